// trainer: one program, told what to do by one recipe.
//
//     mpirun -n 2 trainer --config recipes/smoke/gpt_tiny.yaml
//
// Exit codes: 0 done; 1 the run, its data or the machine failed; 2 the command line or the recipe
// is wrong; 143 ended by SIGTERM.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <optional>
#include <thread>

#include "framework/base/build_info.h"
#include "framework/base/log.h"
#include "recipes/trainer/plan.h"
#include "recipes/trainer/run.h"

namespace obelisk {
namespace {

struct CommandLine {
  std::string config;
  std::vector<std::string> overrides;
  bool dry_run = false;
  bool help_recipe = false;
  std::string help_section;
};

// Fills `line`; an exit code when there is nothing to run.
std::optional<int> parse(int argc, char** argv, bool speaks, CommandLine& line) {
  CLI::App app{"Trains the model that a recipe describes.", "trainer"};
  app.add_option("--config", line.config, "the recipe, a YAML file")->type_name("FILE");
  app.add_option("--set", line.overrides, "override one key: section.key=value (repeatable)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_flag("--dry-run", line.dry_run, "check the recipe, print the plan, and stop");
  auto* help = app.add_option("--help-recipe", line.help_section,
                              "list every recipe key, or those of one section");
  help->expected(0, 1)->type_name("[SECTION]");
  app.set_version_flag("--version", build_id());
  app.footer(
      "Signals: SIGINT (Ctrl-C) and SIGUSR1 end the run after its step, with validation, sample "
      "and\n"
      "report; SIGTERM ends it at once after its step. Under mpirun send SIGUSR1 to mpirun.\n"
      "Exit codes: 0 done; 1 the run, its data or the machine failed; 2 the command line or the\n"
      "recipe is wrong; 143 ended by SIGTERM.");
  try {
    app.parse(argc, argv);
    line.help_recipe = help->count() > 0;
    if (!line.help_recipe && line.config.empty())
      throw RecipeError(
          "trainer: --config is required; name a recipe, for example --config "
          "recipes/smoke/gpt_tiny.yaml");
  } catch (const CLI::Success& success) {
    return speaks ? app.exit(success) : 0;
  } catch (const CLI::ParseError& error) {
    if (speaks) std::fprintf(stderr, "trainer: %s; see trainer --help\n", error.what());
    return 2;
  }
  return std::nullopt;
}

int run(const CommandLine& line, const parallel::MpiSession& mpi, int rank, int num_ranks) {
  if (line.help_recipe) {
    const std::string text = recipe_help(*recipe::Recipe::descriptor(), line.help_section);
    if (rank == 0) std::fputs(text.c_str(), stdout);
    return 0;
  }
  const LoadedRecipe loaded = load_recipe(line.config, line.overrides);
  validate(loaded, num_ranks);
  if (!line.dry_run) return run_recipe(line.config, loaded, mpi);
  const std::string plan = describe_plan(loaded, num_ranks, mpi.ranks_on_node());
  if (rank == 0) std::fputs(plan.c_str(), stdout);
  return 0;
}

// The one place where errors end up.
int run_main(int argc, char** argv) {
  const parallel::MpiSession mpi(&argc, &argv);
  const auto world = mpi.world();
  const int rank = world->rank(), num_ranks = world->size();
  log::Scope log_scope({.rank = rank, .num_ranks = num_ranks});
  try {
    CommandLine line;
    if (const auto code = parse(argc, argv, rank == 0, line)) return *code;
    return run(line, mpi, rank, num_ranks);
  } catch (const RecipeError& error) {
    // Every rank reads the same recipe and finds the same fault; rank 0 tells.
    if (rank == 0) std::fprintf(stderr, "%s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    // What befalls all ranks alike is told by the first of them: the others leave it a moment, and
    // are ended by its abort.
    std::this_thread::sleep_for(std::chrono::milliseconds(rank == 0 ? 0 : 500));
    const std::string who = num_ranks > 1 ? fmt::format("rank {}: ", rank) : "";
    std::fprintf(stderr, "trainer: %s%s\n", who.c_str(), error.what());
    std::fflush(nullptr);
    if (num_ranks > 1) mpi.abort(1);
    return 1;
  }
}

}  // namespace
}  // namespace obelisk

int main(int argc, char** argv) { return obelisk::run_main(argc, argv); }
