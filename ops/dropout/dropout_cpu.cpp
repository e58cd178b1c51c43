// Vector kernel: draws come a thousand at a time into a buffer in L1, then select.
#include <algorithm>
#include <array>

#include "framework/tensor/philox.h"
#include "ops/dropout/dropout_kernels.h"
#include "ops/elementwise/strided.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/dropout/dropout_cpu.cpp"
#include <hwy/foreach_target.h>
// Highway's headers stand after foreach_target.h.
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

#ifndef OBELISK_OPS_DROPOUT_TABLES_
#define OBELISK_OPS_DROPOUT_TABLES_
namespace obelisk::ops {
namespace {

constexpr int64_t kRounds = 10;
constexpr int64_t kWordsPerBlock = 4;
constexpr int64_t kChunk = 1024;  // elements whose draws are in the buffer at once
// Room for a chunk that begins inside a block, rounded up to pairs of vectors of blocks.
constexpr int64_t kBufferWords = kChunk + kWordsPerBlock * (1 + 2 * HWY_MAX_BYTES / 8);

struct DropoutRanges {
  template <typename T>
  using Range = void (*)(const DropoutDraws& draws, const T* x, T* y, int64_t begin, int64_t end);
  Range<float> f32;
  Range<double> f64;
  Range<BFloat16> bf16;
};

}  // namespace
}  // namespace obelisk::ops
#endif  // OBELISK_OPS_DROPOUT_TABLES_

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_SCALAR

class Words {
 public:
  explicit Words(const DropoutDraws& draws) : random_(draws.seed, draws.stream, draws.step) {}
  void fill(uint64_t first_block, int64_t blocks, uint32_t* words) const {
    for (int64_t i = 0; i < blocks; ++i) {
      const PhiloxBlock block = random_.block(first_block + static_cast<uint64_t>(i));
      std::copy(block.begin(), block.end(), words + i * kWordsPerBlock);
    }
  }

 private:
  const Philox random_;
};

#else

// Philox4x32-10, a block a 64-bit lane. Each counter word sits in the low half of a lane; the upper
// halves hold what the products left there, which the next product does not read.
class Words {
 public:
  explicit Words(const DropoutDraws& draws) : step_(draws.step) {
    const std::array<uint32_t, 2> key = draws.key();
    for (uint32_t round = 0; round < kRounds; ++round) {
      hn::Store(hn::Set(d64_, uint64_t{key[0] + round * 0x9E3779B9u}), d64_, keys_[2 * round]);
      hn::Store(hn::Set(d64_, uint64_t{key[1] + round * 0xBB67AE85u}), d64_, keys_[2 * round + 1]);
    }
    // Interleaving the halves of each 128 bits gives all even lanes first, then all odd ones.
    const uint64_t lanes = hn::Lanes(d64_);
    for (uint64_t i = 0; i < lanes; ++i) order_[i] = i / 2 + i % 2 * (lanes / 2);
  }

  // Words of `blocks` blocks, rounded up to pairs of whole vectors of them: two at once hide the
  // latency of the products.
  void fill(uint64_t first_block, int64_t blocks, uint32_t* words) const {
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(d64_));
    const V multiplier0 = hn::Set(d64_, uint64_t{0xD2511F53});
    const V multiplier1 = hn::Set(d64_, uint64_t{0xCD9E8D57});
    for (int64_t i = 0; i < blocks; i += 2 * lanes) {
      Counter a = counter(first_block + static_cast<uint64_t>(i));
      Counter b = counter(first_block + static_cast<uint64_t>(i + lanes));
      for (int64_t round = 0; round < kRounds; ++round) {
        const V key0 = hn::Load(d64_, keys_[2 * round]);
        const V key1 = hn::Load(d64_, keys_[2 * round + 1]);
        a = mixed(a, multiplier0, multiplier1, key0, key1);
        b = mixed(b, multiplier0, multiplier1, key0, key1);
      }
      store(a, words + i * kWordsPerBlock);
      store(b, words + (i + lanes) * kWordsPerBlock);
    }
  }

 private:
  using V = hn::Vec<hn::ScalableTag<uint64_t>>;
  using D32 = hn::Repartition<uint32_t, hn::ScalableTag<uint64_t>>;
  struct Counter {
    V word0, word1, word2, word3;
  };

  HWY_INLINE Counter counter(uint64_t first_block) const {
    const V block = hn::Add(hn::Set(d64_, first_block), hn::Load(d64_, order_));
    const V step = hn::Set(d64_, step_);
    return {block, hn::ShiftRight<32>(block), step, hn::ShiftRight<32>(step)};
  }

  static HWY_INLINE V product(V multiplier, V x) {
    return hn::MulEven(hn::BitCast(D32(), multiplier), hn::BitCast(D32(), x));
  }
  static HWY_INLINE Counter mixed(Counter c, V multiplier0, V multiplier1, V key0, V key1) {
    const V product0 = product(multiplier0, c.word0);
    const V product1 = product(multiplier1, c.word2);
    return {hn::Xor(hn::Xor(hn::ShiftRight<32>(product1), c.word1), key0), product1,
            hn::Xor(hn::Xor(hn::ShiftRight<32>(product0), c.word3), key1), product0};
  }

  // Low halves of a and b as the two halves of a lane.
  HWY_INLINE V pair(V a, V b) const {
    return hn::BitCast(
        d64_, hn::OddEven(hn::BitCast(D32(), hn::ShiftLeft<32>(b)), hn::BitCast(D32(), a)));
  }
  HWY_INLINE void store(Counter c, uint32_t* words) const {
    const V first = pair(c.word0, c.word1), second = pair(c.word2, c.word3);
    const D32 d32;
    hn::StoreU(hn::BitCast(d32, hn::InterleaveLower(d64_, first, second)), d32, words);
    hn::StoreU(hn::BitCast(d32, hn::InterleaveUpper(d64_, first, second)), d32,
               words + hn::Lanes(d32));
  }

  const hn::ScalableTag<uint64_t> d64_;
  const uint64_t step_;
  HWY_ALIGN uint64_t order_[HWY_MAX_BYTES / sizeof(uint64_t)];
  HWY_ALIGN uint64_t keys_[2 * kRounds][HWY_MAX_BYTES / sizeof(uint64_t)];
};

#endif  // HWY_TARGET == HWY_SCALAR

// The lanes of draws below the threshold, as a mask for floats of type T.
template <class D, class W>
HWY_INLINE auto is_dropped(D d, W words, int32_t threshold) {
  using TI = hwy::MakeSigned<hn::TFromD<D>>;
  const hn::Rebind<int32_t, D> d32;
  const hn::Rebind<TI, D> di;
  const auto draws = hn::BitCast(d32, hn::ShiftRight<8>(words));
  if constexpr (sizeof(TI) == sizeof(int32_t)) {
    return hn::RebindMask(d, hn::Lt(draws, hn::Set(d32, threshold)));
  } else {
    return hn::RebindMask(d, hn::Lt(hn::PromoteTo(di, draws), hn::Set(di, TI{threshold})));
  }
}

template <typename T>
void dropout_range(const DropoutDraws& draws, const T* x, T* y, int64_t begin, int64_t end) {
  const hn::ScalableTag<Compute<T>> d;
  const hn::Rebind<uint32_t, decltype(d)> dw;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  const Words random(draws);
  const int32_t threshold = draws.threshold();
  const auto scale = hn::Set(d, static_cast<Compute<T>>(draws.scale()));
  HWY_ALIGN uint32_t buffer[kBufferWords];
  for (int64_t chunk = begin; chunk < end; chunk += kChunk) {
    const int64_t n = std::min(kChunk, end - chunk);
    const uint64_t element = draws.first_element + static_cast<uint64_t>(chunk);
    const int64_t skipped = static_cast<int64_t>(element % kWordsPerBlock);
    random.fill(element / kWordsPerBlock, (skipped + n + kWordsPerBlock - 1) / kWordsPerBlock,
                buffer);
    const uint32_t* words = buffer + skipped;
    const T* from = x + chunk;
    T* to = y + chunk;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      const auto dropped = is_dropped(d, hn::LoadU(dw, words + i), threshold);
      store(hn::IfThenZeroElse(dropped, hn::Mul(load(d, from + i), scale)), d, to + i);
    }
    if (i < n) {
      const auto rest = static_cast<size_t>(n - i);
      const auto dropped = is_dropped(d, load_partial(dw, words + i, rest), threshold);
      const auto kept = hn::Mul(load(d, from + i, rest), scale);
      store(hn::IfThenZeroElse(dropped, kept), d, to + i, rest);
    }
  }
}

const DropoutRanges* dropout_ranges() {
  static constexpr DropoutRanges kRanges{&dropout_range<float>, &dropout_range<double>,
                                         &dropout_range<BFloat16>};
  return &kRanges;
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
namespace {
HWY_EXPORT(dropout_ranges);
}  // namespace

template <typename T>
void run_dropout(const ExecContext& context, const DropoutDraws& draws, const T* x, T* y,
                 int64_t n) {
  const DropoutRanges& ranges = *HWY_DYNAMIC_DISPATCH(dropout_ranges)();
  context.parallel_for(n, elementwise_grain(n), [&](int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<T, float>) {
      ranges.f32(draws, x, y, begin, end);
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      ranges.bf16(draws, x, y, begin, end);
    } else {
      ranges.f64(draws, x, y, begin, end);
    }
  });
}
template void run_dropout<float>(const ExecContext&, const DropoutDraws&, const float*, float*,
                                 int64_t);
template void run_dropout<BFloat16>(const ExecContext&, const DropoutDraws&, const BFloat16*,
                                    BFloat16*, int64_t);
template void run_dropout<double>(const ExecContext&, const DropoutDraws&, const double*, double*,
                                  int64_t);

}  // namespace obelisk::ops
#endif  // HWY_ONCE
