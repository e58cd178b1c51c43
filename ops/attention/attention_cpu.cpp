// The vector kernel of attention: online softmax (Milakov, Gimelshein, 2018) over blocks of keys,
// one group of queries at a time. Scores are kept in units of log 2, since the exponential is 2^x.

#include <algorithm>
#include <limits>

#include "ops/attention/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once a target.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "ops/attention/tile-inl.h"
#include "ops/common/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

template <typename Stored>
class Forward {
  using T = Compute<Stored>;

 public:
  explicit Forward(const KernelArgs& args)
      : n_(args.inputs[0].shape(), args.inputs[1].shape(), args.attrs.as<AttentionAttrs>()),
        q_(args.inputs[0]),
        k_(args.inputs[1]),
        v_(args.inputs[2]),
        o_(args.outputs[0]),
        lse_(args.outputs[1].data<T>()),
        group_(group_size<T>()),
        groups_((n_.queries + group_ - 1) / group_),
        scratch_size_((2 * n_.width + kKeyBlock + 1) * group_ + 2 * n_.keys * n_.width) {}

  void run(ExecContext& context) const {
    const int64_t items = n_.batch * n_.heads * groups_;
    const int64_t work = n_.batch * n_.heads * n_.queries * n_.keys * n_.width;
    context.parallel_for_with_scratch<T>(
        items, items_of_range(items, work), scratch_size_,
        [&](int64_t begin, int64_t end, T* scratch) { run_items(begin, end, scratch); });
  }

 private:
  // Items run through batch, head, group. Under a causal mask late groups cost more: taking the
  // first and the last, the second and the last but one, ... makes equal ranges cost alike.
  HWY_NOINLINE void run_items(int64_t begin, int64_t end, T* scratch) const {
    int64_t packed = -1;  // batch and kv head
    for (int64_t item = begin; item < end; ++item) {
      const int64_t turn = item % groups_;
      const int64_t head = item / groups_;
      const int64_t group = turn % 2 == 0 ? turn / 2 : groups_ - 1 - turn / 2;
      const int64_t b = head / n_.heads, h = head % n_.heads;
      T* const k = scratch;
      T* const v = k + n_.keys * n_.width;
      if (head / n_.heads_per_kv != packed) {
        packed = head / n_.heads_per_kv;
        copy_rows(k_.row(b, 0, h / n_.heads_per_kv), k_.token_stride, n_.keys, n_.width, T{1}, k,
                  n_.width);
        copy_rows(v_.row(b, 0, h / n_.heads_per_kv), v_.token_stride, n_.keys, n_.width, T{1}, v,
                  n_.width);
      }
      run_group(b, h, group * group_, k, v, v + n_.keys * n_.width);
    }
  }

  void run_group(int64_t b, int64_t h, int64_t first, const T* k, const T* v, T* scratch) const {
    const Tag<T> d;
    const int64_t lanes = vector_lanes<T>();
    const int64_t count = std::min(group_, n_.queries - first);
    const int64_t visible = n_.visible(first + count - 1);
    T* const q = scratch;                // [D][group]
    T* const o = q + n_.width * group_;  // [D][group]
    T* const s = o + n_.width * group_;  // [keys of a block][group]
    T* const alpha = s + kKeyBlock * group_;
    pack_group(q_.row(b, first, h), q_.token_stride, count, n_.width,
               static_cast<T>(n_.scale * kLog2E), q);
    std::fill_n(o, n_.width * group_, T{0});

    auto max0 = hn::Set(d, -std::numeric_limits<T>::infinity()), max1 = max0;
    auto sum0 = hn::Zero(d), sum1 = sum0;
    for (int64_t key = 0; key < visible; key += kKeyBlock) {
      const int64_t keys = std::min(kKeyBlock, visible - key);
      multiply_rows<T, Rows::Scattered, Init::Zero>(
          {k + key * n_.width, n_.width, q, group_, n_.width, s, group_}, keys);
      mask(s, key, keys, first);
      auto new_max0 = max0, new_max1 = max1;
      for (int64_t i = 0; i < keys; ++i) {
        new_max0 = hn::Max(new_max0, hn::LoadU(d, s + i * group_));
        new_max1 = hn::Max(new_max1, hn::LoadU(d, s + i * group_ + lanes));
      }
      const auto alpha0 = exp2(d, hn::Sub(max0, new_max0));
      const auto alpha1 = exp2(d, hn::Sub(max1, new_max1));
      max0 = new_max0;
      max1 = new_max1;
      hn::StoreU(alpha0, d, alpha);
      hn::StoreU(alpha1, d, alpha + lanes);
      auto block_sum0 = hn::Zero(d), block_sum1 = block_sum0;
      for (int64_t i = 0; i < keys; ++i) {
        T* const row = s + i * group_;
        const auto p0 = exp2(d, hn::Sub(hn::LoadU(d, row), max0));
        const auto p1 = exp2(d, hn::Sub(hn::LoadU(d, row + lanes), max1));
        hn::StoreU(p0, d, row);
        hn::StoreU(p1, d, row + lanes);
        block_sum0 = hn::Add(block_sum0, p0);
        block_sum1 = hn::Add(block_sum1, p1);
      }
      sum0 = hn::MulAdd(sum0, alpha0, block_sum0);
      sum1 = hn::MulAdd(sum1, alpha1, block_sum1);
      multiply_rows<T, Rows::Dense, Init::Rescale>(
          {v + key * n_.width, n_.width, s, group_, keys, o, group_, alpha}, n_.width);
    }
    finish(o, s, max0, max1, sum0, sum1);
    transpose(o, group_, n_.width, count, T{1}, o_.row(b, first, h), o_.token_stride);
    std::copy_n(s, count, lse_ + (b * n_.heads + h) * n_.queries + first);
  }

  // Sets the scores of keys that a query does not see to -inf. Keys up to the first query's last
  // are seen by the whole group.
  void mask(T* s, int64_t key, int64_t keys, int64_t first) const {
    if (!n_.causal) return;
    const Tag<T> d;
    const int64_t lanes = vector_lanes<T>();
    const auto hidden = hn::Set(d, -std::numeric_limits<T>::infinity());
    const auto lane0 = hn::Iota(d, T{0});
    const auto lane1 = hn::Iota(d, static_cast<T>(lanes));
    for (int64_t i = std::max<int64_t>(0, n_.visible(first) - key); i < keys; ++i) {
      T* const row = s + i * group_;
      const auto first_lane = hn::Set(d, static_cast<T>(key + i + 1 - n_.visible(first)));
      const auto seen0 = hn::Ge(lane0, first_lane), seen1 = hn::Ge(lane1, first_lane);
      hn::StoreU(hn::IfThenElse(seen0, hn::LoadU(d, row), hidden), d, row);
      hn::StoreU(hn::IfThenElse(seen1, hn::LoadU(d, row + lanes), hidden), d, row + lanes);
    }
  }

  // Divides o by the sums and leaves lse in `lse`. Without keys: 0 and -inf.
  void finish(T* o, T* lse, Lane<T> max0, Lane<T> max1, Lane<T> sum0, Lane<T> sum1) const {
    const Tag<T> d;
    const int64_t lanes = vector_lanes<T>();
    const auto inverse = [&](Lane<T> sum) HWY_ATTR {
      return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Div(hn::Set(d, T{1}), sum));
    };
    // hn::Log knows no NaN; sum - sum brings it back.
    const auto log_sum = [&](Lane<T> max, Lane<T> sum) HWY_ATTR {
      const auto log = hn::MulAdd(max, hn::Set(d, static_cast<T>(kLn2)), hn::Log(d, sum));
      return hn::Add(log, hn::Sub(sum, sum));
    };
    const auto inverse0 = inverse(sum0), inverse1 = inverse(sum1);
    for (int64_t i = 0; i < n_.width * group_; i += group_) {
      hn::StoreU(hn::Mul(hn::LoadU(d, o + i), inverse0), d, o + i);
      hn::StoreU(hn::Mul(hn::LoadU(d, o + i + lanes), inverse1), d, o + i + lanes);
    }
    hn::StoreU(log_sum(max0, sum0), d, lse);
    hn::StoreU(log_sum(max1, sum1), d, lse + lanes);
  }

  const AttentionSizes n_;
  const HeadRows<Stored> q_, k_, v_, o_;
  T* const lse_;
  const int64_t group_;
  const int64_t groups_;  // of a head
  const int64_t scratch_size_;
};

void kernel(const KernelArgs& args) {
  visit_float(args.inputs[0].dtype(), "attention",
              [&]<typename T>() { Forward<T>(args).run(args.context); });
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
HWY_EXPORT(kernel);
void attention_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(kernel)(args); }
}  // namespace obelisk::ops
#endif
