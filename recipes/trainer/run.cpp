#include "recipes/trainer/run.h"

#include <hwy/highway.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "framework/base/log.h"
#include "framework/base/trace.h"
#include "framework/train/console.h"
#include "framework/train/loop.h"
#include "framework/train/report.h"
#include "framework/train/run_folder.h"
#include "framework/train/tensorboard.h"
#include "ops/common/isa.h"
#include "ops/common/peak.h"
#include "recipes/trainer/build.h"
#include "recipes/trainer/plan.h"

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

// What all ranks multiply and add a second when all do it at once.
double peak_flops(ExecContext& context, parallel::Communicator& world) {
  constexpr double kSeconds = 0.05;
  world.barrier();
  const Tensor sum = full({}, DType::F64, ops::measure_multiply_add_rate(context, kSeconds));
  world.all_reduce(sum);
  return sum.item<double>();
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
    tensorboard_.emplace(folder.path());
    report_path_ = folder.file("report.html");
    write_file(folder.file("recipe.yaml"), facts.resolved_recipe);
  }

  void on_step(const StepRecord& record, bool logged) override {
    if (logged) events_.step(record);
    if (logged && tensorboard_) tensorboard_->step(record);
    if (console_) console_->step(record);
    if (report_) report_->step(record);
  }

  void on_validation(const ValidationRecord& record) override {
    events_.validation(record);
    if (console_) console_->validation(record);
    if (tensorboard_) tensorboard_->validation(record);
    if (!report_) return;
    report_->validation(record);
    report_->write(report_path_);
  }

  void finish(RunResult result, const TraceFile& trace) {
    if (report_) {
      report_->timeline(trace.first_step());
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
  std::optional<TensorBoardFile> tensorboard_;
  std::string report_path_;
};

}  // namespace

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
  RunPlan plan = make_plan(recipe, world->size(), ranks_on_node);
  parallel::PretrainTask task(plan.model, plan.options, plan.tokenizer, std::move(plan.data), mesh);

  const RunFolder folder = open_folder(recipe.run().folder(), *world);
  const recipe::Train& train = recipe.train();
  const RunFacts facts{.recipe = file,
                       .resolved_recipe = resolved_recipe(recipe),
                       .folder = folder.path(),
                       .model = describe_model(plan.model),
                       .parameters = task.parameters().num_parameters(),
                       .ranks = world->size(),
                       .threads_per_rank = context.num_threads(),
                       .tokens_per_step = tokens_per_step(recipe),
                       .steps = train.steps(),
                       .time_limit_seconds = train.time_limit_seconds(),
                       .machine = machine_info(),
                       .libraries = library_versions(),
                       .flops_per_token = parallel::Gpt2::training_flops_per_token(
                           plan.model, plan.options.sequence_length),
                       .peak_flops = peak_flops(context, *world),
                       .state = {.weights = plan.memory.weights,
                                 .gradients = plan.memory.gradients,
                                 .moments = plan.memory.moments}};
  Surface surface(facts, folder, world->rank(), train.log_every());
  constexpr int64_t kFirstTracedStep = 3;  // the first two take memory
  const TraceFile trace(TraceFile::path_in(folder.path(), world->rank()), world->rank(),
                        kFirstTracedStep, recipe.run().trace_steps());
  RunResult result;
  try {
    run_training(task,
                 {.steps = train.steps(),
                  .time_limit_seconds = train.time_limit_seconds(),
                  .log_every = train.log_every(),
                  .validate_every = train.validate_every()},
                 {&surface}, result);
    if (world->rank() == 0 && !StopSignals::terminate_asked()) result.sample = task.sample();
    if (!result.sample.empty()) write_file(folder.file("sample.txt"), result.sample);
  } catch (const std::exception& error) {
    result.ending = Ending::Failed;
    result.error = error.what();
    surface.finish(result, trace);
    throw;
  }
  surface.finish(result, trace);
  world->barrier();
  return StopSignals::terminate_asked() ? 143 : 0;
}

}  // namespace obelisk
