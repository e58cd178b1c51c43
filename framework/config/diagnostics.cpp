#include "framework/config/diagnostics.h"

#include <algorithm>
#include <tuple>

#include "framework/base/error.h"

namespace obelisk {

std::string to_string(const Place& place) {
  if (place.line == 0) return place.source;
  return fmt::format("{}:{}:{}", place.source, place.line, place.column);
}

void Diagnostics::add(const Place& place, const std::string& message) {
  errors_.push_back({source_rank(place.source), place, message});
}

void Diagnostics::name_source(const std::string& source) { source_rank(source); }

int Diagnostics::source_rank(const std::string& source) {
  const auto found = std::find(sources_.begin(), sources_.end(), source);
  if (found == sources_.end()) {
    sources_.push_back(source);
    return static_cast<int>(sources_.size()) - 1;
  }
  return static_cast<int>(found - sources_.begin());
}

void Diagnostics::raise_if_any() {
  if (errors_.empty()) return;
  std::stable_sort(errors_.begin(), errors_.end(), [](const Error& a, const Error& b) {
    return std::tie(a.rank, a.place.line, a.place.column) <
           std::tie(b.rank, b.place.line, b.place.column);
  });
  std::string text;
  for (const Error& error : errors_) {
    if (!text.empty()) text += '\n';
    text += to_string(error.place) + ": " + error.message;
  }
  throw RecipeError(text);
}

}  // namespace obelisk
