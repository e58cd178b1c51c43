#include "ops/common/isa.h"

#include <hwy/highway.h>
#include <hwy/targets.h>
#include <oneapi/dnnl/dnnl.h>

#include <bit>

#include "framework/base/error.h"

namespace obelisk::ops {

void limit_isa(std::string_view name) {
  if (name == "best") return;
  OBELISK_CHECK(name == "avx2" || name == "baseline", RecipeError,
                "max-isa: must be one of baseline, avx2, best; got '{}'", name);
  const bool avx2 = name == "avx2";
  // A lower bit is a better target.
  const int64_t best_allowed = avx2 ? HWY_AVX2 : HWY_SCALAR;
  hwy::DisableTargets(best_allowed - 1);
  hwy::GetChosenTarget().DeInit();
  const dnnl_status_t status = dnnl_set_max_cpu_isa(avx2 ? dnnl_cpu_isa_avx2 : dnnl_cpu_isa_sse41);
  OBELISK_CHECK(status == dnnl_success, DeviceError,
                "max-isa: must be set before the first kernel runs; oneDNN answered status {}",
                static_cast<int>(status));
}

std::string active_isa() {
  const int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);
}

}  // namespace obelisk::ops
