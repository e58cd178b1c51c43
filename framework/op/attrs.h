// Attrs: an op's attributes, one plain struct an op, held inline and type-erased.
//
// The struct is trivially copyable and lists its fields once; printing, hashing and equality come
// from that list:
//
//   struct GeluAttrs {
//     bool tanh_form = false;
//     static constexpr auto fields() { return std::tuple{field("tanh_form",
//     &GeluAttrs::tanh_form)}; }
//   };
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/op/dim.h"
#include "framework/tensor/dtype.h"

namespace obelisk {

template <typename Struct, typename Member>
struct Field {
  const char* name;
  Member Struct::*member;
};
template <typename Struct, typename Member>
constexpr Field<Struct, Member> field(const char* name, Member Struct::*member) {
  return {name, member};
}

// An op without attributes.
struct NoAttrs {
  static constexpr auto fields() { return std::tuple{}; }
};

namespace attrs_detail {

std::string print(bool value);
std::string print(int64_t value);
std::string print(double value);
std::string print(DType value);
std::string print(const DimShape& value);
std::string print(const Shape& value);
template <typename E>
requires(std::is_enum_v<E> && !std::is_same_v<E, DType>) std::string print(E value) {
  return std::string(to_string(value));  // every attribute enum brings its names
}
inline std::string print(int value) { return print(static_cast<int64_t>(value)); }

uint64_t hash_text(const std::string& text);

}  // namespace attrs_detail

class Attrs {
 public:
  template <typename T>
  requires(!std::is_same_v<T, Attrs>) Attrs(const T& value)
      : type_(&kType<T>) {  // NOLINT: implicit, an attribute struct is an Attrs
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kCapacity);
    std::memcpy(bytes_, &value, sizeof(T));
  }

  template <typename T>
  const T& as() const {
    OBELISK_CHECK(type_ == &kType<T>, Bug, "bug: attributes read as another op's");
    return *reinterpret_cast<const T*>(bytes_);
  }

  // "{eps=1e-05}", in the order of the field list.
  std::string to_string() const { return type_->print(bytes_); }
  uint64_t hash() const { return attrs_detail::hash_text(to_string()); }
  friend bool operator==(const Attrs& a, const Attrs& b) {
    return a.type_ == b.type_ && a.to_string() == b.to_string();
  }

 private:
  struct Type {
    std::string (*print)(const void*);
  };
  template <typename T>
  static std::string print(const void* bytes) {
    std::string text = "{";
    std::apply(
        [&](const auto&... fields) {
          ((text += (text.size() > 1 ? ", " : "") + std::string(fields.name) + "=" +
                    attrs_detail::print(static_cast<const T*>(bytes)->*fields.member)),
           ...);
        },
        T::fields());
    return text + "}";
  }
  template <typename T>
  static constexpr Type kType{&print<T>};

  static constexpr size_t kCapacity = 112;
  const Type* type_;
  alignas(8) std::byte bytes_[kCapacity];
};

}  // namespace obelisk
