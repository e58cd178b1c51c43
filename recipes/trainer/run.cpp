#include "recipes/trainer/run.h"

#include <hwy/highway.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "framework/base/log.h"
#include "framework/train/console.h"
#include "framework/train/loop.h"
#include "framework/train/report.h"
#include "framework/train/run_folder.h"
#include "ops/common/isa.h"
#include "recipes/trainer/build.h"

namespace obelisk {
namespace {

// Rank 0's text to every rank.
std::string broadcast_text(parallel::Communicator& world, std::string text) {
  Tensor length = full({}, DType::I64, static_cast<double>(text.size()));
  world.broadcast(length, 0);
  Tensor bytes = empty({length.item<int64_t>()}, DType::U8);
  if (world.rank() == 0) std::copy(text.begin(), text.end(), bytes.data<uint8_t>());
  world.broadcast(bytes, 0);
  return {bytes.data<uint8_t>(), bytes.data<uint8_t>() + bytes.numel()};
}

// Rank 0's number folder, made there and told to the others; its failure is everybody's.
RunFolder open_folder(const std::string& base, parallel::Communicator& world) {
  if (world.rank() != 0) return RunFolder::join(broadcast_text(world, ""));
  RunFolder folder = RunFolder::create(base);
  broadcast_text(world, folder.path());
  return folder;
}

std::vector<std::pair<std::string, std::string>> library_versions() {
  return {{"MPI", parallel::mpi_version()},
          {"Highway", fmt::format("{}.{} ({})", HWY_MAJOR, HWY_MINOR, ops::active_isa())}};
}

// Everyone who is told of steps on this rank.
class Surface : public LoopObserver {
 public:
  Surface(const RunFacts& facts, const RunFolder& folder, int rank, int64_t log_every)
      : events_(EventLog::path_in(folder.path(), rank)),
        observe_(
            [this](log::Level level, std::string_view text) { events_.message(level, text); }) {
    events_.run_start(facts, rank);
    if (rank != 0) return;
    console_.emplace(ConsoleOptions{.fd = STDOUT_FILENO,
                                    .steps = facts.steps,
                                    .time_limit_seconds = facts.time_limit_seconds,
                                    .log_every = log_every,
                                    .launcher = launcher_output(getpid())});
    route_.emplace(
        [this](log::Level level, std::string_view text) { console_->message(level, text); });
    console_->head(facts);
    report_.emplace(facts);
    report_path_ = folder.file("report.html");
    write_file(folder.file("recipe.yaml"), facts.resolved_recipe);
  }

  void on_step(const StepRecord& record, bool logged) override {
    if (logged) events_.step(record);
    if (console_) console_->step(record);
    if (report_) report_->step(record);
  }

  void on_validation(const ValidationRecord& record) override {
    events_.validation(record);
    if (console_) console_->validation(record);
    if (!report_) return;
    report_->validation(record);
    report_->write(report_path_);
  }

  void finish(RunResult result) {
    if (report_) {
      result.report = report_path_;
      report_->finish(result);
      report_->write(report_path_);
    }
    if (console_) console_->finish(result);
    events_.run_end(result);
  }

 private:
  EventLog events_;
  log::Observer observe_;
  std::optional<Console> console_;
  std::optional<log::Route> route_;
  std::optional<RunReport> report_;
  std::string report_path_;
};

struct Prepared {
  std::shared_ptr<const Tokenizer> tokenizer;
  TextData data;
  parallel::Gpt2Config model;
  parallel::PretrainOptions options;
};

Prepared prepare(const recipe::Recipe& recipe) {
  Prepared prepared;
  const std::string text = read_text_file(recipe.data().path());
  prepared.tokenizer = build_tokenizer(recipe.tokenizer(), text);
  prepared.data = split_text(*prepared.tokenizer, text, recipe.data().validation_fraction(),
                             recipe.batch().sequence_length(), recipe.data().path());
  prepared.model = build_model_config(recipe.model(), prepared.tokenizer->vocabulary_size());
  prepared.options = build_pretrain_options(recipe);
  return prepared;
}

int64_t count_parameters(const parallel::Gpt2& model) {
  const auto parameters = model.parameters();
  return std::accumulate(parameters.begin(), parameters.end(), int64_t{0},
                         [](int64_t sum, const Parameter* p) { return sum + p->numel(); });
}

int64_t tokens_per_step(const recipe::Recipe& recipe) {
  return int64_t{recipe.batch().sequences()} * recipe.batch().sequence_length();
}

}  // namespace

std::string describe_plan(const LoadedRecipe& loaded, int num_ranks, int ranks_on_node) {
  const recipe::Recipe& recipe = loaded.recipe;
  const Prepared prepared = prepare(recipe);
  const parallel::Gpt2 model(prepared.model);
  const auto parameters = static_cast<double>(count_parameters(model));
  const double element = static_cast<double>(size_of(prepared.options.dtype));
  const double tokens = static_cast<double>(tokens_per_step(recipe));
  const double flops = model.training_flops_per_token(recipe.batch().sequence_length()) * tokens;
  constexpr double kMiB = 1024.0 * 1024.0;
  // Weights, gradients and AdamW's two moments.
  const double state = 4 * parameters * element / kMiB;
  std::string text;
  auto line = [&](const char* name, const std::string& value) {
    text += fmt::format("{:<14} {}\n", name, value);
  };
  line("model", describe_model(prepared.model));
  line("parameters", fmt::format("{}", static_cast<int64_t>(parameters)));
  line("mesh",
       fmt::format("dp {}, {} threads a rank", num_ranks, threads_per_rank(recipe, ranks_on_node)));
  line("data", fmt::format("{}: {} training tokens, {} validation tokens", recipe.data().path(),
                           prepared.data.train.size(), prepared.data.validation.size()));
  line("step",
       fmt::format("{} tokens, {:.2f} GFLOP (6 x parameters in products, and causal attention)",
                   static_cast<int64_t>(tokens), flops / 1e9));
  line("run", fmt::format("{} steps, {:.2f} M tokens, {:.2f} times the training text",
                          recipe.train().steps(),
                          static_cast<double>(recipe.train().steps()) * tokens / 1e6,
                          static_cast<double>(recipe.train().steps()) * tokens /
                              static_cast<double>(prepared.data.train.size())));
  line("memory a rank",
       fmt::format("{:.1f} MiB of weights, gradients and moments, activations on top", state));
  return text;
}

int run_recipe(const std::string& file, const LoadedRecipe& loaded,
               const parallel::MpiSession& mpi) {
  const StopSignals signals;  // a signal while data are read ends the run before its first step
  const recipe::Recipe& recipe = loaded.recipe;
  const int ranks_on_node = mpi.ranks_on_node();
  ExecContext context(
      {.num_threads = threads_per_rank(recipe, ranks_on_node),
       .allocator = make_cpu_allocator(memory_limit_per_rank(recipe, ranks_on_node))});
  ExecScope scope(context);

  const std::unique_ptr<parallel::Communicator> world = mpi.world();
  const parallel::ProcessMesh mesh({.dp = world->size()}, mpi.world());
  Prepared prepared = prepare(recipe);
  parallel::PretrainTask task(prepared.model, prepared.options, prepared.tokenizer,
                              std::move(prepared.data), mesh);

  const RunFolder folder = open_folder(recipe.run().folder(), *world);
  const recipe::Train& train = recipe.train();
  const RunFacts facts{.recipe = file,
                       .resolved_recipe = resolved_recipe(recipe),
                       .folder = folder.path(),
                       .model = describe_model(prepared.model),
                       .parameters = task.parameters().num_parameters(),
                       .ranks = world->size(),
                       .threads_per_rank = context.num_threads(),
                       .tokens_per_step = tokens_per_step(recipe),
                       .steps = train.steps(),
                       .time_limit_seconds = train.time_limit_seconds(),
                       .machine = machine_info(),
                       .libraries = library_versions()};
  Surface surface(facts, folder, world->rank(), train.log_every());
  RunResult result;
  try {
    result = run_training(task,
                          {.steps = train.steps(),
                           .time_limit_seconds = train.time_limit_seconds(),
                           .log_every = train.log_every(),
                           .validate_every = train.validate_every()},
                          {&surface});
    if (world->rank() == 0 && !StopSignals::terminate_asked()) result.sample = task.sample();
    if (!result.sample.empty()) write_file(folder.file("sample.txt"), result.sample);
  } catch (const std::exception& error) {
    result.ending = Ending::Failed;
    result.error = error.what();
    surface.finish(result);
    throw;
  }
  surface.finish(result);
  world->barrier();
  return StopSignals::terminate_asked() ? 143 : 0;
}

}  // namespace obelisk
