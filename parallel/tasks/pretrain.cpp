#include "parallel/tasks/pretrain.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "framework/base/trace.h"
#include "framework/tensor/philox.h"
#include "ops/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/sample/sample.h"

namespace obelisk::parallel {
namespace {

// Adds the seconds of its scope to a phase; also a span of the trace.
class PhaseScope {
 public:
  PhaseScope(const char* name, double& seconds) : span_(name), seconds_(seconds) {}
  ~PhaseScope() { seconds_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  const TraceSpan span_;
  double& seconds_;
  const Clock::time_point begin_ = Clock::now();
};

double to_double(const Tensor& scalar) {
  return scalar.dtype() == DType::F64 ? scalar.item<double>() : scalar.item<float>();
}

Tensor random_state(uint64_t seed, int64_t step, int64_t first_sample) {
  Tensor state = empty({3}, DType::I64);
  int64_t* values = state.data<int64_t>();
  values[0] = static_cast<int64_t>(seed);
  values[1] = step;
  values[2] = first_sample;
  return state;
}

constexpr uint64_t kSampleStream = random_stream("sample", "token");

}  // namespace

std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, const SampleOptions& options) {
  if (options.tokens == 0) return {};
  std::vector<int32_t> prompt;
  try {
    prompt = tokenizer.encode(options.prompt);
  } catch (const ValueError& error) {
    raise<ValueError>("sample.prompt: {}", error.what());
  }
  OBELISK_CHECK(!prompt.empty(), ValueError,
                "sample.prompt: must not be empty; got ''; give at least one character");
  return prompt;
}

PretrainTask::PretrainTask(const Gpt2Config& model, const PretrainOptions& options,
                           std::shared_ptr<const Tokenizer> tokenizer, TextData data,
                           const ProcessMesh& mesh)
    : options_(options),
      tokenizer_(std::move(tokenizer)),
      data_(std::move(data)),
      mesh_(mesh),
      model_(model),
      parameters_(model_.parameters(), options.dtype),
      optimizer_(parameters_, options.optimizer),
      prompt_(encode_prompt(*tokenizer_, options.sample)),
      flags_(zeros({32}, DType::I64)) {
  const int64_t dp = mesh_.dp().size();
  OBELISK_CHECK(options_.sequences > 0 && options_.sequences % dp == 0, ShapeError,
                "pretrain: batch.sequences must be a positive multiple of dp; got {} and {}",
                options_.sequences, dp);
  sequences_per_rank_ = options_.sequences / dp;
  if (options_.micro_batch_size == 0) options_.micro_batch_size = sequences_per_rank_;
  OBELISK_CHECK(options_.micro_batch_size > 0, ShapeError,
                "pretrain: batch.micro_batch_size must not be negative; got {}",
                options_.micro_batch_size);
  parameters_.initialise(options_.seed);
  model_.set_recompute(options_.recompute);
  batches_ = [this](int64_t step, int64_t first, int64_t count) {
    return random_windows(data_.train, options_.sequence_length, options_.seed, step, first, count);
  };
}

StepResult PretrainTask::step(int64_t index) {
  StepResult result;
  result.tokens = options_.sequences * options_.sequence_length;
  result.learning_rate = learning_rate(options_.schedule, index);
  const double local_loss = accumulate_gradients(index, result.phases);
  {
    const PhaseScope phase("reduce", result.phases.reduce);
    if (mesh_.dp().size() > 1) mesh_.dp().all_reduce(parameters_.gradients());
    result.loss = summed_over_ranks(local_loss) / static_cast<double>(result.tokens);
  }
  const PhaseScope phase("optimizer", result.phases.optimizer);
  result.gradient_norm = optimizer_.gradient_norm();
  // Both numbers come out of collectives, so every rank decides alike.
  result.skipped = !std::isfinite(result.loss) || !std::isfinite(result.gradient_norm);
  if (!result.skipped) optimizer_.step(result.learning_rate);
  return result;
}

double PretrainTask::accumulate_gradients(int64_t index, PhaseSeconds& phases) {
  {
    const PhaseScope phase("zero_gradients", phases.optimizer);
    parameters_.zero_gradients();
  }
  double loss_sum = 0;
  const int64_t first = mesh_.dp().rank() * sequences_per_rank_;
  for (int64_t done = 0; done < sequences_per_rank_;) {
    const int64_t count = std::min(options_.micro_batch_size, sequences_per_rank_ - done);
    loss_sum += run_micro_batch(index, first + done, count, phases);
    done += count;
  }
  return loss_sum;
}

double PretrainTask::run_micro_batch(int64_t index, int64_t first, int64_t count,
                                     PhaseSeconds& phases) {
  TokenBatch batch;
  {
    const PhaseScope phase("data", phases.data);
    batch = batches_(index, first, count);
  }
  Tensor loss;
  {
    const PhaseScope phase("forward", phases.forward);
    const Tensor random = random_state(options_.seed, index, first);
    loss = model_.loss_sum(batch.inputs_BT, batch.targets_BT, random);
  }
  const PhaseScope phase("backward", phases.backward);
  // The mean over all tokens of all ranks, whatever the micro-batches: sums are scaled by the
  // global count.
  const auto tokens = static_cast<double>(options_.sequences * options_.sequence_length);
  ops::backward(ops::multiply(loss, full({}, loss.dtype(), 1.0 / tokens)));
  return to_double(loss);
}

ValidationRecord PretrainTask::validate() {
  NoGradScope no_grad;
  const int64_t available = num_ordered_windows(data_.validation, options_.sequence_length);
  const int64_t windows = options_.validation_sequences > 0
                              ? std::min(options_.validation_sequences, available)
                              : available;
  const int64_t rank = mesh_.dp().rank(), ranks = mesh_.dp().size();
  const int64_t end = windows * (rank + 1) / ranks;
  double loss_sum = 0;
  for (int64_t first = windows * rank / ranks; first < end;) {
    const int64_t count = std::min(options_.micro_batch_size, end - first);
    const TokenBatch batch =
        ordered_windows(data_.validation, options_.sequence_length, first, count);
    loss_sum += to_double(model_.loss_sum(batch.inputs_BT, batch.targets_BT, Tensor()));
    first += count;
  }
  ValidationRecord record;
  record.tokens = windows * options_.sequence_length;
  record.loss = summed_over_ranks(loss_sum) / static_cast<double>(record.tokens);
  return record;
}

std::string PretrainTask::sample() {
  if (options_.sample.tokens == 0) return "";
  NoGradScope no_grad;
  std::vector<int32_t> text = prompt_;
  const auto context = static_cast<size_t>(model_.config().context_length);
  for (int64_t i = 0; i < options_.sample.tokens; ++i) {
    // The model sees the last context_length tokens.
    const size_t length = std::min(text.size(), context);
    Tensor ids = empty({1, static_cast<int64_t>(length)}, DType::I64);
    std::copy(text.end() - static_cast<std::ptrdiff_t>(length), text.end(), ids.data<int64_t>());
    const Tensor next = ops::sample(model_.next_logits(ids), random_state(options_.seed, i, 0),
                                    {.temperature = options_.sample.temperature,
                                     .top_k = options_.sample.top_k,
                                     .stream = static_cast<int64_t>(kSampleStream)});
    text.push_back(static_cast<int32_t>(next.item<int64_t>()));
  }
  return tokenizer_->decode(text);
}

int64_t PretrainTask::memory_bytes() const {
  return ExecContext::current().allocator()->stats().peak_bytes_in_use;
}

uint32_t PretrainTask::agree(uint32_t flags) {
  if (mesh_.world().size() == 1) return flags;
  int64_t* bits = flags_.data<int64_t>();
  for (int i = 0; i < 32; ++i) bits[i] = flags >> i & 1u;
  mesh_.world().all_reduce(flags_, ReduceKind::Max);
  uint32_t agreed = 0;
  for (int i = 0; i < 32; ++i) agreed |= static_cast<uint32_t>(bits[i]) << i;
  return agreed;
}

double PretrainTask::summed_over_ranks(double value) const {
  if (mesh_.dp().size() == 1) return value;
  Tensor sum = full({}, DType::F64, value);
  mesh_.dp().all_reduce(sum);
  return sum.item<double>();
}

}  // namespace obelisk::parallel
