#include "ops/linear_cross_entropy/linear_cross_entropy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear_cross_entropy/scaled_accumulate_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h, which includes this file once a target.
#include <hwy/highway.h>

#include "ops/common/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace obelisk::ops::HWY_NAMESPACE {
namespace {

// Elements below which a second thread costs more than it brings.
constexpr int64_t kGrain = 1 << 14;

void scaled_accumulate_kernel(const KernelArgs& args) {
  visit_f32_f64(args.inputs[0].dtype(), "scaled_accumulate", [&]<typename T>() {
    const hn::ScalableTag<T> d;
    T* destination = args.inputs[0].data<T>();
    const T* x = args.inputs[1].data<T>();
    const auto factor = hn::Set(d, args.inputs[2].item<T>());
    args.context.parallel_for(
        args.inputs[0].numel(), kGrain, [&](int64_t begin, int64_t end) HWY_ATTR {
          map_binary(destination + begin, x + begin, destination + begin, end - begin,
                     [&](auto a, auto b) HWY_ATTR { return hn::MulAdd(factor, b, a); });
        });
  });
}

}  // namespace
}  // namespace obelisk::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace obelisk::ops {
HWY_EXPORT(scaled_accumulate_kernel);
void scaled_accumulate_cpu(const KernelArgs& args) {
  HWY_DYNAMIC_DISPATCH(scaled_accumulate_kernel)(args);
}
}  // namespace obelisk::ops
#endif  // HWY_ONCE
