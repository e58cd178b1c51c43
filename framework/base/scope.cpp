#include "framework/base/scope.h"

namespace obelisk {
namespace {
thread_local const std::string* current_path = nullptr;
thread_local const char* current_op = nullptr;
}  // namespace

PathScope::PathScope(const std::string& path) : outer_(current_path) { current_path = &path; }
PathScope::~PathScope() { current_path = outer_; }
const std::string* PathScope::current() { return current_path; }

OpScope::OpScope(const char* name) : outer_(current_op), span_(name, "op", current_path) {
  current_op = name;
}
OpScope::~OpScope() { current_op = outer_; }
const char* OpScope::current() { return current_op; }

std::string describe_scope() {
  std::string text = current_op != nullptr ? current_op : "a buffer outside any op";
  if (current_path != nullptr && !current_path->empty()) text += " in " + *current_path;
  return text;
}

}  // namespace obelisk
