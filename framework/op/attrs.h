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
#include <string_view>
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
std::string print(Dim value);
std::string print(const DimShape& value);
std::string print(const Shape& value);
template <typename E>
requires(std::is_enum_v<E> && !std::is_same_v<E, DType>) std::string print(E value) {
  return std::string(to_string(value));  // every attribute enum brings its names
}
inline std::string print(int value) { return print(static_cast<int64_t>(value)); }

uint64_t hash_text(const std::string& text);

// What print() wrote, read again; ValueError names the text that does not fit. Dims with symbols
// go to the table.
void read(std::string_view text, SymbolTable& symbols, bool& value);
void read(std::string_view text, SymbolTable& symbols, int64_t& value);
void read(std::string_view text, SymbolTable& symbols, int& value);
void read(std::string_view text, SymbolTable& symbols, double& value);
void read(std::string_view text, SymbolTable& symbols, DType& value);
void read(std::string_view text, SymbolTable& symbols, Dim& value);
void read(std::string_view text, SymbolTable& symbols, DimShape& value);
void read(std::string_view text, SymbolTable& symbols, Shape& value);
[[noreturn]] void refuse(std::string_view what, std::string_view text);
template <typename E>
requires(std::is_enum_v<E> && !std::is_same_v<E, DType>) void read(std::string_view text,
                                                                   SymbolTable&, E& value) {
  // Attribute enums count from 0, and a value beyond the last prints like another one or "?".
  for (int i = 0; i < 16; ++i) {
    value = static_cast<E>(i);
    if (to_string(value) == text) return;
  }
  refuse("a name of the enum", text);
}

// Takes "{a=1, b=[2, 3]}" apart, field by field.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text);
  std::string_view next(std::string_view field);
  void finish() const;

 private:
  std::string_view whole_, rest_;
};

inline void map_dims(FunctionRef<Dim(Dim)> map, Dim& value) { value = map(value); }
inline void map_dims(FunctionRef<Dim(Dim)> map, DimShape& value) {
  for (Dim& dim : value) dim = map(dim);
}
template <typename T>
void map_dims(FunctionRef<Dim(Dim)>, T&) {}

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
  // The same with every symbolic dim replaced by what `map` makes of it.
  Attrs with_dims(FunctionRef<Dim(Dim)> map) const {
    Attrs result = *this;
    type_->map_dims(result.bytes_, map);
    return result;
  }
  // The inverse of to_string(), for the op's struct T. Throws ValueError.
  template <typename T>
  static Attrs parse(std::string_view text, SymbolTable& symbols) {
    T value{};
    attrs_detail::FieldReader reader(text);
    std::apply(
        [&](const auto&... fields) {
          (attrs_detail::read(reader.next(fields.name), symbols, value.*fields.member), ...);
        },
        T::fields());
    reader.finish();
    return value;
  }
  friend bool operator==(const Attrs& a, const Attrs& b) {
    return a.type_ == b.type_ && a.to_string() == b.to_string();
  }

 private:
  struct Type {
    std::string (*print)(const void*);
    void (*map_dims)(void*, FunctionRef<Dim(Dim)>);
  };
  template <typename T>
  static void map_dims(void* bytes, FunctionRef<Dim(Dim)> map) {
    std::apply(
        [&](const auto&... fields) {
          (attrs_detail::map_dims(map, static_cast<T*>(bytes)->*fields.member), ...);
        },
        T::fields());
  }
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
  static constexpr Type kType{&print<T>, &map_dims<T>};

  static constexpr size_t kCapacity = 112;
  const Type* type_;
  alignas(8) std::byte bytes_[kCapacity];
};

}  // namespace obelisk
