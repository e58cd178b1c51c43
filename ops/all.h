// Every OpDef of this layer. Coverage checks, and whoever reads a graph or a plan, need the way
// from a name to its definition.
#pragma once

#include <span>
#include <string_view>

#include "framework/op/op_def.h"

namespace obelisk::ops {

// In the order of the list in all.cpp.
std::span<const OpDef* const> all();

// Null when no op has this name.
const OpDef* find(std::string_view name);

}  // namespace obelisk::ops
