// Errors of Obelisk: exceptions whose text follows "place: rule; got values; remedy".
//
// Checks guard contracts and user input. OBELISK_CHECK stays in release builds. The text of a Bug
// starts with "bug:": a broken invariant of ours, never the user's doing. Mesh coordinate and
// module path are added on the way up, where known.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace obelisk {

class Error : public std::runtime_error {
 public:
  explicit Error(std::string message) : std::runtime_error(message), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }

  // Appends " (place)", once: the innermost scope that knows a place wins.
  void add_place(const std::string& place) {
    if (placed_ || place.empty()) return;
    placed_ = true;
    message_ += " (" + place + ")";
  }

 private:
  std::string message_;
  bool placed_ = false;
};

// The user's recipe or command line; the process ends with exit code 2.
struct RecipeError : Error {
  using Error::Error;
};
// Operands whose shapes or dtypes do not fit an op or a layer.
struct ShapeError : Error {
  using Error::Error;
};
// A value inside a tensor that an op cannot accept, for example a token id outside the vocabulary.
struct ValueError : Error {
  using Error::Error;
};
struct CommError : Error {
  using Error::Error;
};
struct DeviceError : Error {
  using Error::Error;
};
struct OutOfMemory : DeviceError {
  using DeviceError::DeviceError;
};
struct IoError : Error {
  using Error::Error;
};
struct Bug : Error {
  using Error::Error;
};

template <typename E, typename... Args>
[[noreturn]] void raise(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace obelisk

// OBELISK_CHECK(condition, ErrorType, "place: rule; got {}; remedy", values...)
#define OBELISK_CHECK(condition, ErrorType, ...) \
  do {                                           \
    if (!(condition)) [[unlikely]]               \
      ::obelisk::raise<ErrorType>(__VA_ARGS__);  \
  } while (false)

// An invariant of ours.
#define OBELISK_ASSERT(condition)                                                              \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::obelisk::raise<::obelisk::Bug>("bug: {} does not hold at {}:{}", #condition, __FILE__, \
                                       __LINE__);                                              \
  } while (false)
