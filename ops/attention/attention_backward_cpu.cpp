// The vector kernel of attention's gradient. One batch and kv head at a time, on one thread: blocks
// of keys outside, queries inside. dk and dv of a block stay in the cache while all queries pass,
// in a fixed order; dq gathers in a buffer of its own, block after block. So no result depends on
// the number of threads.

#include <algorithm>

#include "ops/attention/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_backward_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once a target.
#include <hwy/highway.h>

#include "ops/attention/tile-inl.h"
#include "ops/common/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

template <typename Stored>
class Backward {
  using T = Compute<Stored>;

 public:
  explicit Backward(const KernelArgs& args)
      : n_(args.inputs[0].shape(), args.inputs[1].shape(), args.attrs.as<AttentionAttrs>()),
        q_(args.inputs[0]),
        k_(args.inputs[1]),
        v_(args.inputs[2]),
        o_(args.inputs[3]),
        g_(args.inputs[5]),
        dq_(args.outputs[0]),
        dk_(args.outputs[1]),
        dv_(args.outputs[2]),
        lse_(args.inputs[4].data<T>()),
        group_(group_size<T>()),
        groups_((n_.queries + group_ - 1) / group_),
        step_(n_.queries >= kLongSequence ? kGroupsPerStep : 1),
        padded_width_((n_.width + group_ - 1) / group_ * group_),
        rows_(n_.heads_per_kv * groups_ * group_) {}

  void run(ExecContext& context) const {
    const int64_t items = n_.batch * n_.kv_heads;
    const int64_t work = 5 * n_.batch * n_.heads * n_.queries * n_.keys * n_.width;
    context.parallel_for_with_scratch<T>(
        items, items_of_range(items, work), scratch_size(),
        [&](int64_t begin, int64_t end, T* scratch) { run_items(begin, end, scratch); });
  }

 private:
  // Groups of queries that share one pass over dk and dv; more of them cost more masked work next
  // to the diagonal, which short sequences feel.
  static constexpr int64_t kGroupsPerStep = 4;
  static constexpr int64_t kLongSequence = 256;

  // Of one kv head. Queries of all its heads stand in rows, each head padded to whole groups; the
  // padding is 0 and adds nothing.
  struct Scratch {
    T *q_lanes, *g_lanes, *dq_lanes;  // [rows / group][D][group]
    T *q_rows, *g_rows;               // [rows][padded D]
    T *lse, *delta;                   // [rows]; lse in units of log 2
    T *k, *v;                         // [keys of a block][D]
    T *dk, *dv;                       // [keys of a block][padded D]
    T *p, *ds;                        // [keys of a block][step groups]
  };

  int64_t scratch_size() const {
    return rows_ * (3 * n_.width + 2 * padded_width_ + 2) +
           kKeyBlock * (2 * n_.width + 2 * padded_width_ + 2 * step_ * group_);
  }
  Scratch cut(T* next) const {
    const auto take = [&](int64_t count) {
      T* const begin = next;
      next += count;
      return begin;
    };
    Scratch x;
    for (T** part : {&x.q_lanes, &x.g_lanes, &x.dq_lanes}) *part = take(rows_ * n_.width);
    for (T** part : {&x.q_rows, &x.g_rows}) *part = take(rows_ * padded_width_);
    for (T** part : {&x.lse, &x.delta}) *part = take(rows_);
    for (T** part : {&x.dk, &x.dv}) *part = take(kKeyBlock * padded_width_);
    for (T** part : {&x.p, &x.ds}) *part = take(kKeyBlock * step_ * group_);
    for (T** part : {&x.k, &x.v}) *part = take(kKeyBlock * n_.width);
    return x;
  }

  HWY_NOINLINE void run_items(int64_t begin, int64_t end, T* scratch) const {
    const Scratch x = cut(scratch);
    // Nobody writes the padding again.
    std::fill_n(x.q_rows, rows_ * padded_width_, T{0});
    std::fill_n(x.g_rows, rows_ * padded_width_, T{0});
    for (int64_t item = begin; item < end; ++item) {
      const int64_t b = item / n_.kv_heads, kv = item % n_.kv_heads;
      for (int64_t g = 0; g < n_.heads_per_kv; ++g) load_head(b, kv * n_.heads_per_kv + g, g, x);
      for (int64_t key = 0; key < n_.keys; key += kKeyBlock) run_keys(b, kv, key, x);
      for (int64_t g = 0; g < n_.heads_per_kv; ++g) store_head(b, kv * n_.heads_per_kv + g, g, x);
    }
  }

  void load_head(int64_t b, int64_t h, int64_t g, const Scratch& x) const {
    const int64_t begin = g * groups_ * group_;
    T* const q_rows = x.q_rows + begin * padded_width_;
    T* const g_rows = x.g_rows + begin * padded_width_;
    copy_rows(q_.row(b, 0, h), q_.token_stride, n_.queries, n_.width, T{1}, q_rows, padded_width_);
    copy_rows(g_.row(b, 0, h), g_.token_stride, n_.queries, n_.width, T{1}, g_rows, padded_width_);
    for (int64_t first = 0; first < n_.queries; first += group_) {
      const int64_t lanes = (begin + first) * n_.width, row = first * padded_width_;
      pack_group(q_rows + row, padded_width_, group_, n_.width, static_cast<T>(n_.scale * kLog2E),
                 x.q_lanes + lanes);
      pack_group(g_rows + row, padded_width_, group_, n_.width, T{1}, x.g_lanes + lanes);
    }
    const int64_t padded = groups_ * group_;
    std::fill_n(x.dq_lanes + begin * n_.width, padded * n_.width, T{0});
    const T* const lse = lse_ + (b * n_.heads + h) * n_.queries;
    for (int64_t t = 0; t < n_.queries; ++t) {
      x.lse[begin + t] = lse[t] * static_cast<T>(kLog2E);
      x.delta[begin + t] = dot(g_rows + t * padded_width_, o_.row(b, t, h));
    }
    std::fill_n(x.lse + begin + n_.queries, padded - n_.queries, T{0});
    std::fill_n(x.delta + begin + n_.queries, padded - n_.queries, T{0});
  }

  T dot(const T* a, const Stored* b) const {
    const Tag<T> d;
    const int64_t lanes = vector_lanes<T>();
    auto sum = hn::Zero(d);
    int64_t i = 0;
    for (; i + lanes <= n_.width; i += lanes) sum = hn::MulAdd(load(d, a + i), load(d, b + i), sum);
    if (i < n_.width) {
      const auto rest = static_cast<size_t>(n_.width - i);
      sum = hn::MulAdd(load(d, a + i, rest), load(d, b + i, rest), sum);
    }
    return hn::GetLane(hn::SumOfLanes(d, sum));
  }

  void store_head(int64_t b, int64_t h, int64_t g, const Scratch& x) const {
    for (int64_t first = 0; first < n_.queries; first += group_)
      transpose(x.dq_lanes + (g * groups_ * group_ + first) * n_.width, group_, n_.width,
                std::min(group_, n_.queries - first), static_cast<T>(n_.scale),
                dq_.row(b, first, h), dq_.token_stride);
  }

  void run_keys(int64_t b, int64_t kv, int64_t key, const Scratch& x) const {
    const int64_t keys = std::min(kKeyBlock, n_.keys - key);
    copy_rows(k_.row(b, key, kv), k_.token_stride, keys, n_.width, T{1}, x.k, n_.width);
    copy_rows(v_.row(b, key, kv), v_.token_stride, keys, n_.width, T{1}, x.v, n_.width);
    std::fill_n(x.dk, keys * padded_width_, T{0});
    std::fill_n(x.dv, keys * padded_width_, T{0});
    // Earlier groups do not see this block.
    const int64_t first_seeing = std::max<int64_t>(0, key - (n_.keys - n_.queries));
    const int64_t first_group = n_.causal ? first_seeing / group_ : 0;
    for (int64_t g = 0; g < n_.heads_per_kv; ++g)
      for (int64_t group = first_group; group < groups_; group += step_)
        run_step(g * groups_, group, std::min(groups_, group + step_), key, keys, x);
    copy_rows(x.dk, padded_width_, keys, n_.width, static_cast<T>(n_.scale), dk_.row(b, key, kv),
              dk_.token_stride);
    copy_rows(x.dv, padded_width_, keys, n_.width, T{1}, dv_.row(b, key, kv), dv_.token_stride);
  }

  // Adds the share of some groups of one head; `head` is the head's first group.
  void run_step(int64_t head, int64_t begin, int64_t end, int64_t key, int64_t block_keys,
                const Scratch& x) const {
    const int64_t stride = step_ * group_;
    const auto keys_seen = [&](int64_t group) {
      const int64_t last = std::min(n_.queries, (group + 1) * group_) - 1;
      return std::clamp<int64_t>(n_.visible(last) - key, 0, block_keys);
    };
    const int64_t keys = keys_seen(end - 1);
    for (int64_t group = begin; group < end; ++group) {
      const int64_t seen = keys_seen(group);
      T* const p = x.p + (group - begin) * group_;
      T* const ds = x.ds + (group - begin) * group_;
      run_group(head + group, group * group_, key, seen, p, ds, x);
      for (int64_t i = seen; i < keys; ++i) {
        std::fill_n(p + i * stride, group_, T{0});
        std::fill_n(ds + i * stride, group_, T{0});
      }
    }
    const int64_t row = (head + begin) * group_ * padded_width_;
    const int64_t depth = (end - begin) * group_;
    for (int64_t column = 0; column < padded_width_; column += group_) {
      multiply_rows<T, Rows::Scattered, Init::Keep>(
          {x.p, stride, x.g_rows + row + column, padded_width_, depth, x.dv + column,
           padded_width_},
          keys);
      multiply_rows<T, Rows::Scattered, Init::Keep>(
          {x.ds, stride, x.q_rows + row + column, padded_width_, depth, x.dk + column,
           padded_width_},
          keys);
    }
  }

  // p and ds of one group and the keys it sees, and its dq.
  void run_group(int64_t group, int64_t first, int64_t key, int64_t keys, T* p, T* ds,
                 const Scratch& x) const {
    const int64_t stride = step_ * group_;
    const int64_t lanes_at = group * group_ * n_.width;
    multiply_rows<T, Rows::Scattered, Init::Zero>(
        {x.k, n_.width, x.q_lanes + lanes_at, group_, n_.width, p, stride}, keys);
    multiply_rows<T, Rows::Scattered, Init::Zero>(
        {x.v, n_.width, x.g_lanes + lanes_at, group_, n_.width, ds, stride}, keys);
    const int64_t seen_by_all =
        n_.causal ? std::clamp<int64_t>(n_.visible(first) - key, 0, keys) : keys;
    for (int64_t j = 0; j < group_; j += vector_lanes<T>())
      softmax_gradient(x.lse + group * group_ + j, x.delta + group * group_ + j, keys, seen_by_all,
                       key + 1 - n_.visible(first) - j, p + j, ds + j);
    multiply_rows<T, Rows::Dense, Init::Keep>(
        {x.k, n_.width, ds, stride, keys, x.dq_lanes + lanes_at, group_}, n_.width);
  }

  // One vector of queries: scores in p become probabilities, <g, v> in ds becomes the scores'
  // gradient. Key i is seen by the lanes from first_lane + i on.
  void softmax_gradient(const T* lse_at, const T* delta_at, int64_t keys, int64_t seen_by_all,
                        int64_t first_lane, T* p, T* ds) const {
    const Tag<T> d;
    const int64_t stride = step_ * group_;
    const auto lse = hn::LoadU(d, lse_at), delta = hn::LoadU(d, delta_at);
    const auto lane = hn::Iota(d, T{0});
    for (int64_t i = 0; i < keys; ++i) {
      auto probability = exp2(d, hn::Sub(hn::LoadU(d, p + i * stride), lse));
      auto gradient = hn::Mul(probability, hn::Sub(hn::LoadU(d, ds + i * stride), delta));
      if (i >= seen_by_all) {
        const auto seen = hn::Ge(lane, hn::Set(d, static_cast<T>(first_lane + i)));
        probability = hn::IfThenElseZero(seen, probability);
        gradient = hn::IfThenElseZero(seen, gradient);
      }
      hn::StoreU(probability, d, p + i * stride);
      hn::StoreU(gradient, d, ds + i * stride);
    }
  }

  const AttentionSizes n_;
  const HeadRows<Stored> q_, k_, v_, o_, g_, dq_, dk_, dv_;
  const T* const lse_;
  const int64_t group_;
  const int64_t groups_;  // of a head
  const int64_t step_;    // groups
  const int64_t padded_width_;
  const int64_t rows_;
};

void kernel(const KernelArgs& args) {
  visit_float(args.inputs[0].dtype(), "attention_backward",
              [&]<typename T>() { Backward<T>(args).run(args.context); });
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
HWY_EXPORT(kernel);
void attention_backward_cpu(const KernelArgs& args) { HWY_DYNAMIC_DISPATCH(kernel)(args); }
}  // namespace obelisk::ops
#endif
