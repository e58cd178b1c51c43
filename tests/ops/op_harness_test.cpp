// Every check over every case of every op. See op_case.h.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "framework/tensor/philox.h"
#include "ops/all.h"
#include "tests/ops/op_run.h"
#include "tests/support/guard_allocator.h"

namespace obelisk {
namespace {

struct Instance {
  const OpDef* op;
  const OpCase* op_case;
  Bf16 bf16;
};

std::vector<Instance> instances() {
  std::vector<Instance> list;
  for (const OpCases& cases : all_op_cases())
    for (const OpCase& op_case : cases.cases) list.push_back({cases.op, &op_case, cases.bf16});
  return list;
}

std::string instance_name(const ::testing::TestParamInfo<Instance>& info) {
  std::string name = std::string(info.param.op->name) + "__" + info.param.op_case->name;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

double largest(const Values& values) {
  double result = 0;
  for (double x : values.numbers)
    if (std::isfinite(x)) result = std::max(result, std::abs(x));
  return result;
}

// Rounding: each of n additions errs by half an ulp of the running sum; transcendental functions by
// a few ulp.
double tolerance(const OpCase& op_case, double eps, double magnitude) {
  return eps * (16.0 + static_cast<double>(op_case.reduction_length)) *
         std::max(magnitude, op_case.magnitude);
}

// `rounding`: of an element once, relative; `inside`: of numbers as large as the largest one.
struct Rounding {
  double relative = 0, inside = 0;
};

void expect_close(const Values& actual, const Values& expected, const OpCase& op_case, double eps,
                  const std::string& what, const Rounding& rounding = {}) {
  ASSERT_EQ(actual.shape, expected.shape) << what;
  const double size = largest(expected);
  const double floor =
      is_float(actual.dtype)
          ? tolerance(op_case, eps, size) + rounding.inside * std::max(size, op_case.magnitude)
          : 0.0;
  for (size_t i = 0; i < expected.numbers.size(); ++i) {
    const double a = actual.numbers[i], e = expected.numbers[i];
    const double bound = floor + rounding.relative * std::abs(e);
    if (std::isnan(e)) {
      ASSERT_TRUE(std::isnan(a)) << what << " element " << i;
    } else if (std::isinf(e)) {
      ASSERT_EQ(a, e) << what << " element " << i;
    } else {
      ASSERT_NEAR(a, e, bound) << what << " element " << i;
    }
  }
}

void expect_same_bits(const std::vector<Values>& a, const std::vector<Values>& b,
                      const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].shape, b[k].shape);
    if (a[k].numbers.empty()) continue;
    ASSERT_EQ(0, std::memcmp(a[k].numbers.data(), b[k].numbers.data(),
                             a[k].numbers.size() * sizeof(double)))
        << what << ", output " << k;
  }
}

double epsilon(DType dtype) {
  return dtype == DType::F64 ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
}

class OpHarness : public ::testing::TestWithParam<Instance> {
 protected:
  const OpDef& op() const { return *GetParam().op; }
  const OpCase& op_case() const { return *GetParam().op_case; }
  std::vector<DType> dtypes() const {
    if (!has_float_operand(op_case())) return {DType::F64};
    if (GetParam().bf16 == Bf16::None || !op_case().in_bf16) return {DType::F32, DType::F64};
    return {DType::F32, DType::F64, DType::BF16};
  }
  // Of a result in `dtype` from operands in bf16.
  Rounding rounding(DType dtype) const {
    constexpr double kUnit = 0x1p-8;  // half the distance of neighbours, relative
    return {dtype == DType::BF16 ? kUnit : 0.0,
            GetParam().bf16 == Bf16::RoundedInside ? 4 * kUnit : 0.0};
  }
  bool differentiable() const {
    return op().backward != nullptr && !gradient_inputs(op_case()).empty();
  }
};

TEST_P(OpHarness, KernelEqualsReference) {
  ExecContext context({.num_threads = 2});
  ExecScope scope(context);
  if (op().view != nullptr || op().reference == nullptr) {
    // Views have no kernels, and a fused op may name decompose as its only reference.
    ASSERT_TRUE(op().view != nullptr || op().decompose != nullptr) << "no reference at all";
    return;
  }
  for (DType dtype : dtypes()) {
    const auto actual = run_forward(op(), op_case(), dtype, Which::Kernel);
    const auto expected = run_forward(op(), op_case(), DType::F64, dtype, Which::Reference);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t k = 0; k < actual.size(); ++k)
      expect_close(actual[k], expected[k], op_case(), epsilon(dtype),
                   fmt::format("{} output {}", to_string(dtype), k),
                   dtype == DType::BF16             ? rounding(actual[k].dtype)
                   : actual[k].dtype == DType::BF16 ? Rounding{0x1p-8}
                                                    : Rounding());
  }
}

// A rule of several ops rounds between them.
TEST_P(OpHarness, GradientInBf16FollowsF64) {
  if (!differentiable() || dtypes().back() != DType::BF16) return;
  ExecContext context;
  ExecScope scope(context);
  const auto actual = run_gradient(op(), op_case(), {.dtype = DType::BF16, .numbers = DType::BF16});
  const auto expected = run_gradient(op(), op_case(), {.numbers = DType::BF16});
  for (size_t k = 0; k < actual.gradients.size(); ++k) {
    EXPECT_EQ(actual.gradients[k].dtype, DType::F32);
    expect_close(actual.gradients[k], expected.gradients[k], op_case(), epsilon(DType::BF16),
                 fmt::format("gradient {}", k), {.inside = 8 * 0x1p-8});
  }
}

TEST_P(OpHarness, StaysInsideItsBuffers) {
  for (DType dtype : dtypes()) {
    std::vector<std::vector<Values>> results;
    for (size_t shift : {size_t{0}, size_t{8}}) {  // aligned to vectors, and to elements only
      auto guard = std::make_shared<GuardAllocator>(shift);
      ExecContext context({.num_threads = 2, .allocator = guard});
      ExecScope scope(context);
      results.push_back(run_forward(op(), op_case(), dtype, Which::Kernel));
      if (differentiable()) run_gradient(op(), op_case(), {.dtype = dtype});
      EXPECT_EQ(guard->damage(), 0) << to_string(dtype) << " shifted by " << shift << " bytes";
    }
    expect_same_bits(results[0], results[1], "unaligned buffers change bits");
  }
}

TEST_P(OpHarness, SameBitsOnAnyNumberOfThreads) {
  for (DType dtype : dtypes()) {
    std::vector<std::vector<Values>> forward, backward;
    for (int threads : {1, 2, 3, 1}) {  // the last one repeats the first
      ExecContext context({.num_threads = threads});
      ExecScope scope(context);
      forward.push_back(run_forward(op(), op_case(), dtype, Which::Kernel));
      if (differentiable())
        backward.push_back(run_gradient(op(), op_case(), {.dtype = dtype}).gradients);
    }
    for (size_t i = 1; i < forward.size(); ++i)
      expect_same_bits(forward[0], forward[i], "forward, " + std::string(to_string(dtype)));
    for (size_t i = 1; i < backward.size(); ++i)
      expect_same_bits(backward[0], backward[i], "backward, " + std::string(to_string(dtype)));
  }
}

// (L(x + h v) - L(x - h v)) / 2h against <gradient, v> for random directions v, one operand at a
// time.
TEST_P(OpHarness, GradientMatchesFiniteDifferences) {
  if (!differentiable()) return;
  ExecContext context;
  ExecScope scope(context);
  const GradientRun base = run_gradient(op(), op_case(), {});
  const std::vector<int> wanted = gradient_inputs(op_case());
  for (size_t k = 0; k < wanted.size(); ++k) {
    const size_t n = base.gradients[k].numbers.size();
    const Philox random(11, random_stream("direction", std::to_string(k)), 0);
    const double scale = op_case().inputs[wanted[k]].scale;
    const double h = 1e-5 * std::max(scale, 1e-3);
    double slope = 0, norm = 0;
    std::vector<std::vector<double>> up(wanted.size()), down(wanted.size());
    for (size_t j = 0; j < wanted.size(); ++j) {
      up[j].assign(base.gradients[j].numbers.size(), 0.0);
      down[j] = up[j];
    }
    for (size_t i = 0; i < n; ++i) {
      const double v = random.normal(i);
      up[k][i] = h * v;
      down[k][i] = -h * v;
      slope += base.gradients[k].numbers[i] * v;
      norm += base.gradients[k].numbers[i] * base.gradients[k].numbers[i];
    }
    const double plus = run_gradient(op(), op_case(), {.backward = false, .perturb = up}).objective;
    const double minus =
        run_gradient(op(), op_case(), {.backward = false, .perturb = down}).objective;
    const double rounding =
        1e-15 * (std::abs(plus) + op_case().magnitude * std::sqrt(static_cast<double>(n) + 1)) / h;
    EXPECT_NEAR((plus - minus) / (2 * h), slope, 1e-6 * std::sqrt(norm) + 100 * rounding + 1e-8)
        << "operand " << wanted[k];
  }
}

// Gradients of one operand alone, and gradients added to a buffer that already holds something, are
// the same.
TEST_P(OpHarness, GradientsAccumulateAndStandAlone) {
  if (!differentiable()) return;
  ExecContext context;
  ExecScope scope(context);
  const GradientRun base = run_gradient(op(), op_case(), {});
  const std::vector<int> wanted = gradient_inputs(op_case());
  GradientRun accumulated = run_gradient(op(), op_case(), {.initial_gradient = 3.0});
  for (size_t k = 0; k < wanted.size(); ++k) {
    for (double& x : accumulated.gradients[k].numbers) x -= 3.0;
    OpCase loose = op_case();
    loose.magnitude = std::max(loose.magnitude, 4.0);
    expect_close(accumulated.gradients[k], base.gradients[k], loose, epsilon(DType::F64),
                 fmt::format("accumulated operand {}", wanted[k]));
    const GradientRun alone = run_gradient(op(), op_case(), {.only_input = wanted[k]});
    expect_close(alone.gradients[k], base.gradients[k], op_case(), epsilon(DType::F64),
                 fmt::format("operand {} alone", wanted[k]));
  }
}

TEST_P(OpHarness, FusedEqualsDecomposed) {
  if (op().decompose == nullptr) return;
  ExecContext context;
  ExecScope scope(context);
  const auto fused = run_forward(op(), op_case(), DType::F64, Which::Kernel);
  const auto parts = run_forward(op(), op_case(), DType::F64, Which::Decompose);
  // Hidden outputs of the fused op, which come last, need no counterpart.
  ASSERT_GE(fused.size(), parts.size());
  for (size_t k = 0; k < parts.size(); ++k)
    expect_close(fused[k], parts[k], op_case(), epsilon(DType::F64), fmt::format("output {}", k));
  if (!differentiable()) return;
  const GradientRun a = run_gradient(op(), op_case(), {});
  const GradientRun b = run_gradient(op(), op_case(), {.which = Which::Decompose});
  for (size_t k = 0; k < a.gradients.size(); ++k)
    expect_close(a.gradients[k], b.gradients[k], op_case(), 4 * epsilon(DType::F64),
                 fmt::format("gradient {}", k));
}

INSTANTIATE_TEST_SUITE_P(All, OpHarness, ::testing::ValuesIn(instances()), instance_name);

TEST(OpCoverage, EveryOpHasCasesOfEveryKind) {
  std::set<std::string> covered;
  for (const OpCases& cases : all_op_cases()) {
    EXPECT_FALSE(cases.cases.empty()) << cases.op->name;
    covered.insert(cases.op->name);
    std::set<std::string> names;
    bool has_gradient = false, has_dims = false, has_zero = false, has_one = false;
    for (const OpCase& op_case : cases.cases) {
      EXPECT_TRUE(names.insert(op_case.name).second)
          << cases.op->name << ": case " << op_case.name << " is listed twice";
      has_gradient = has_gradient || !gradient_inputs(op_case).empty();
      for (const Operand& operand : op_case.inputs)
        for (int64_t dim : operand.shape) {
          has_dims = true;
          has_zero = has_zero || dim == 0;
          has_one = has_one || dim == 1;
        }
    }
    EXPECT_TRUE(has_zero || !has_dims) << cases.op->name << ": no case with an empty dim";
    EXPECT_TRUE(has_one || !has_dims) << cases.op->name << ": no case with a dim of size 1";
    EXPECT_TRUE(has_gradient || cases.op->backward == nullptr)
        << cases.op->name << ": has a backward rule and no gradient case";
  }
  std::set<std::string> listed;
  for (const OpDef* op : ops::all()) {
    EXPECT_TRUE(listed.insert(op->name).second) << op->name << " is listed twice in ops::all()";
    EXPECT_TRUE(covered.contains(op->name)) << op->name << " has no cases";
    EXPECT_EQ(ops::find(op->name), op);
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_TRUE(op->cost != nullptr || op->view != nullptr) << op->name << " has no cost rule";
    EXPECT_TRUE(op->cpu != nullptr || op->view != nullptr || op->decompose != nullptr) << op->name;
  }
  EXPECT_EQ(covered, listed);
  EXPECT_EQ(ops::find("no_such_op"), nullptr);
}

// Cost rules are functions of the shapes: never negative, and every byte of every operand is at
// least counted somewhere.
TEST(OpCoverage, CostsAreSane) {
  ExecContext context;
  ExecScope scope(context);
  for (const OpCases& cases : all_op_cases()) {
    if (cases.op->cost == nullptr) continue;
    for (const OpCase& op_case : cases.cases) {
      SpecList inputs, outputs;
      for (const Tensor& input : make_inputs(op_case, DType::F32)) inputs.push_back(spec_of(input));
      cases.op->infer({cases.op->name, cases.op->input_names, inputs, op_case.attrs, outputs});
      const Cost cost = cases.op->cost(inputs, outputs, op_case.attrs);
      EXPECT_GE(cost.flops, 0) << cases.op->name << " " << op_case.name;
      EXPECT_GE(cost.bytes_read + cost.bytes_written, bytes_of(outputs))
          << cases.op->name << " " << op_case.name;
    }
  }
}

}  // namespace
}  // namespace obelisk
