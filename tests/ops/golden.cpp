#include "tests/ops/golden.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "framework/base/error.h"

namespace obelisk {
namespace {

using Json = nlohmann::ordered_json;

const Json& file() {
  static const Json kFile = [] {
    const char* path = "tests/golden/ops.json";  // tests run in the repository's root
    std::ifstream stream(path);
    OBELISK_CHECK(stream.good(), IoError, "golden: file must be readable; got {}", path);
    return Json::parse(stream);
  }();
  return kFile;
}

Tensor to_tensor(const Json& array, DType dtype) {
  Shape shape;
  for (const Json& dim : array["shape"]) shape.push_back(dim.get<int64_t>());
  const auto read = [&]<typename T>(T) {
    const auto numbers = array["data"].get<std::vector<T>>();
    return from_values<T>(std::span<const T>(numbers), shape);
  };
  if (array["dtype"] == "i64") return read(int64_t{});
  return dtype == DType::F32 ? read(float{}) : read(double{});
}

}  // namespace

struct GoldenCase::Impl {
  std::string name;
  const Json& json;

  Tensor find(const char* kind, const std::string& key, DType dtype) const {
    const Json& group = json[kind];
    return group.contains(key) ? to_tensor(group[key], dtype) : Tensor();
  }

  void expect(const char* kind, const std::string& key, const Tensor& actual) const {
    SCOPED_TRACE(fmt::format("{} {} {} {}", name, kind, key, to_string(actual.dtype())));
    const Tensor expected = find(kind, key, DType::F64);
    ASSERT_TRUE(expected.defined());
    ASSERT_EQ(actual.shape(), expected.shape());
    const Json& tolerance = json["tolerance"];
    const double relative = tolerance[std::string(to_string(actual.dtype()))].get<double>();
    const double floor = tolerance["floor"].get<double>();
    for (int64_t i = 0; i < actual.numel(); ++i) {
      const double want = expected.data<double>()[i];
      const double got =
          actual.dtype() == DType::F32 ? actual.data<float>()[i] : actual.data<double>()[i];
      ASSERT_NEAR(got, want, relative * std::max(floor, std::abs(want))) << "element " << i;
    }
  }
};

std::vector<std::string> GoldenCase::names(const std::string& op) {
  std::vector<std::string> names;
  for (const auto& [name, json] : file()["cases"].items())
    if (json["op"] == op) names.push_back(name);
  EXPECT_FALSE(names.empty()) << op;
  return names;
}

GoldenCase::GoldenCase(const std::string& name) {
  OBELISK_CHECK(file()["cases"].contains(name), IoError, "golden: no case is called {}", name);
  impl_ = std::make_shared<const Impl>(Impl{name, file()["cases"][name]});
}

double GoldenCase::number(const std::string& attribute) const {
  return impl_->json["attributes"][attribute].get<double>();
}
bool GoldenCase::flag(const std::string& attribute) const {
  return impl_->json["attributes"][attribute].get<bool>();
}
std::string GoldenCase::text(const std::string& attribute) const {
  return impl_->json["attributes"][attribute].get<std::string>();
}
Tensor GoldenCase::input(const std::string& name, DType dtype) const {
  return impl_->find("inputs", name, dtype);
}
Tensor GoldenCase::cotangent(const std::string& output, DType dtype) const {
  return impl_->find("cotangents", output, dtype);
}
void GoldenCase::expect_output(const std::string& name, const Tensor& actual) const {
  impl_->expect("outputs", name, actual);
}
void GoldenCase::expect_gradient(const std::string& input, const Tensor& actual) const {
  impl_->expect("gradients", input, actual);
}

}  // namespace obelisk
