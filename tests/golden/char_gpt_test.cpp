// Training against PyTorch: the same initial weights and batches give the same 100 losses and
// gradient norms. tests/golden/README.md tells what the files are and how they were made.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/parallel/tiny_task.h"
#include "tests/support/bf16_bound.h"
#include "tests/support/half.h"

namespace obelisk::parallel {
namespace {

std::string read_binary(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class CharGpt : public ::testing::Test {
 protected:
  // The golden's name of one of our parameters.
  static std::string golden_name(const std::string& path) {
    if (path == "wte.weight") return "wte";
    if (path == "wpe.weight") return "wpe";
    return path;
  }

  void load_weights(const FlatParameters& parameters) const {
    const std::string bytes = read_binary("tests/golden/char_gpt_weights.bin");
    for (size_t k = 0; k < parameters.parameters().size(); ++k) {
      const Parameter* parameter = parameters.parameters()[k];
      const nlohmann::json& entry = tensor_entry(golden_name(parameter->path()));
      ASSERT_EQ(entry.at("shape").get<std::vector<int64_t>>(),
                std::vector<int64_t>(parameter->shape().begin(), parameter->shape().end()))
          << parameter->path();
      const auto offset = entry.at("offset_bytes").get<size_t>();
      const Tensor master = parameters.master(k);
      for (int64_t i = 0; i < parameter->numel(); ++i) {
        uint16_t half;
        std::memcpy(&half, bytes.data() + offset + 2 * static_cast<size_t>(i), sizeof(half));
        set(master, i, half_to_double(half));
      }
    }
    parameters.round_masters();
  }

  const nlohmann::json& tensor_entry(const std::string& name) const {
    for (const nlohmann::json& entry : golden_.at("weights").at("tensors"))
      if (entry.at("name") == name) return entry;
    throw IoError("char_gpt.json has no tensor " + name);
  }

  static void set(const Tensor& tensor, int64_t i, double value) {
    if (tensor.dtype() == DType::F64) {
      tensor.data<double>()[i] = value;
    } else {
      tensor.data<float>()[i] = static_cast<float>(value);
    }
  }

  void expect_golden_curve(DType dtype, const char* losses_key, const char* norms_key,
                           double tolerance) {
    const std::string tokens = read_binary("tests/golden/char_gpt_tokens.bin");
    const Gpt2Config model{.vocabulary_size = 65,
                           .context_length = 64,
                           .num_layers = 4,
                           .num_heads = 4,
                           .width = 128,
                           .bias = false,
                           .activation = ops::GeluForm::Erf};
    PretrainOptions options;
    options.dtype = dtype;
    options.sequences = 12;
    options.sequence_length = 64;
    options.optimizer = {.beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1, .grad_clip_norm = 1.0};
    options.schedule = {.peak_lr = 1e-3, .min_lr = 1e-4, .warmup_steps = 100, .decay_steps = 2000};
    const ProcessMesh mesh({.dp = 1}, self_communicator());
    PretrainTask task(model, options, make_byte_tokenizer(), TextData{}, mesh);
    task.set_batch_source([&](int64_t step, int64_t first, int64_t count) {
      const TokenBatch batch{empty({count, 64}, DType::I64), empty({count, 64}, DType::I64)};
      for (int64_t row = 0; row < count; ++row)
        for (int64_t t = 0; t < 64; ++t) {
          const char* window = tokens.data() + ((step * 12 + first + row) * 65 + t);
          batch.inputs_BT.data<int64_t>()[row * 64 + t] = static_cast<uint8_t>(window[0]);
          batch.targets_BT.data<int64_t>()[row * 64 + t] = static_cast<uint8_t>(window[1]);
        }
      return batch;
    });
    load_weights(task.parameters());
    const auto losses = golden_.at(losses_key).get<std::vector<double>>();
    const auto norms = golden_.at(norms_key).get<std::vector<double>>();
    ASSERT_EQ(losses.size(), 100u);
    for (size_t i = 0; i < losses.size(); ++i) {
      const StepResult result = task.step(static_cast<int64_t>(i));
      ASSERT_NEAR(result.loss, losses[i], tolerance) << "step " << i;
      ASSERT_NEAR(result.gradient_norm, norms[i], 10 * tolerance) << "step " << i;
    }
  }

  const nlohmann::json golden_ = nlohmann::json::parse(std::ifstream("tests/golden/char_gpt.json"));
  ExecContext context_{{.num_threads = 2}};
  ExecScope scope_{context_};
};

TEST_F(CharGpt, LossesEqualPyTorchInF32) {
  expect_golden_curve(DType::F32, "losses_f32", "gradient_norms_f32", 1e-5);
}
TEST_F(CharGpt, LossesEqualPyTorchInF64) {
  expect_golden_curve(DType::F64, "losses_f64", "gradient_norms_f64", 1e-10);
}

TEST_F(CharGpt, LossesFollowPyTorchInBf16) {
  expect_golden_curve(DType::BF16, "losses_f32", "gradient_norms_f32", bf16_loss_bound(4, 768));
}

}  // namespace
}  // namespace obelisk::parallel
