// One traced step as a picture: a row of phases above a row of ops, to scale.
#pragma once

#include <span>
#include <string>

#include "framework/base/trace.h"

namespace obelisk {

// Appends a <section>: bars from the step's begin to its end, each with a title that says what it
// is; below, the ops that took most time and their shares of the step. Of ops inside ops only the
// outer ones are shown. Appends nothing without a span of category "step".
void append_timeline(std::string& out, std::span<const TraceRecord> spans);

}  // namespace obelisk
