#include "ops/common/isa.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include "framework/base/error.h"

namespace obelisk::ops {

void limit_isa(std::string_view name) {
  if (name == "best") return;
  OBELISK_CHECK(name == "avx2" || name == "baseline", RecipeError,
                "max-isa: must be one of baseline, avx2, best; got '{}'", name);
  // A lower bit is a better target.
  const int64_t best_allowed = name == "avx2" ? HWY_AVX2 : HWY_SCALAR;
  hwy::DisableTargets(best_allowed - 1);
  hwy::GetChosenTarget().DeInit();
}

std::string active_isa() {
  const int64_t targets = hwy::SupportedTargets();
  return hwy::TargetName(targets & -targets);
}

}  // namespace obelisk::ops
