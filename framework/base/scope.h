// What runs now: the module path and the op, kept per thread so that an error or an allocation can
// say who asked. Set by RAII objects only.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/trace.h"

namespace obelisk {

// The path of the module whose forward or backward runs, such as "layers.3.attn.qkv". The text must
// outlive the scope (modules own their path).
class PathScope {
 public:
  explicit PathScope(const std::string& path);
  ~PathScope();
  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

  static const std::string* current();  // null outside any module

 private:
  const std::string* outer_;
};

// The op that runs; the name is a literal. Also a span of the trace.
class OpScope {
 public:
  explicit OpScope(const char* name);
  ~OpScope();
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  static const char* current();  // null outside any op

 private:
  const char* outer_;
  const TraceSpan span_;
};

// "attention in layers.3.attn", "attention", or "a buffer outside any op".
std::string describe_scope();

}  // namespace obelisk
