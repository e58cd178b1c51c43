// Every message of the binder about the text of a recipe: YAML in, exact lines out.
#include "framework/config/binder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ostream>

#include "framework/base/error.h"
#include "tests/config/support.h"

namespace obelisk {
namespace {

struct Case {
  std::string name;
  std::string head;    // see recipe_with
  std::string errors;  // exact
};

void PrintTo(const Case& shown, std::ostream* out) { *out << shown.name; }

class BinderErrors : public testing::TestWithParam<Case> {};

TEST_P(BinderErrors, AreExact) {
  EXPECT_EQ(bind_errors(recipe_with(GetParam().head)), GetParam().errors);
}

const Case kKeys[] = {
    {"valid", "", ""},
    {"unknown_close", "train:\n  steps: 5\n  log_evry: 5",
     "r.yaml:3:3: unknown key 'log_evry' in 'train'; did you mean 'log_every'?"},
    {"unknown_case_and_dash", "train: {steps: 5, Log-Every: 5}",
     "r.yaml:1:19: unknown key 'Log-Every' in 'train'; did you mean 'log_every'?"},
    {"unknown_part_of_name", "optimizer: {peak_lr: 1, warmup: 5}",
     "r.yaml:1:25: unknown key 'warmup' in 'optimizer'; did you mean 'warmup_steps'?"},
    {"unknown_close_elsewhere", "train:\n  steps: 5\n  warmup_stps: 5",
     "r.yaml:3:3: unknown key 'warmup_stps' in 'train'; did you mean 'warmup_steps' in "
     "'optimizer'?"},
    {"unknown_far", "mesh: {zzzzzz: 1}",
     "r.yaml:1:8: unknown key 'zzzzzz' in 'mesh'; known here: dp"},
    {"unknown_top_far", "zzzzzz: 1",
     "r.yaml:1:1: unknown key 'zzzzzz' at the top level; known at the top level: task, seed, "
     "device, "
     "threads, run, model, tokenizer, data, batch, optimizer, train, mesh and sample"},
    {"unknown_section", "modle:\n  width: 8",
     "r.yaml:1:1: unknown section 'modle' at the top level; did you mean 'model'?"},
    {"unknown_empty", "train: {steps: 5, \"\": 1}",
     "r.yaml:1:19: unknown key '' in 'train'; known here: steps, time_limit_seconds, log_every, "
     "validate_every, validation_sequences, precision and recompute"},
    {"misplaced", "train: {steps: 5, warmup_steps: 5}",
     "r.yaml:1:19: unknown key 'warmup_steps' in 'train'; 'warmup_steps' belongs in 'optimizer'"},
    {"misplaced_many", "kind: 5",
     "r.yaml:1:1: unknown key 'kind' at the top level; 'kind' belongs in 'model', in 'tokenizer' "
     "or in "
     "'optimizer'"},
    {"misplaced_to_top", "train: {steps: 5, seed: 5}",
     "r.yaml:1:19: unknown key 'seed' in 'train'; 'seed' belongs at the top level"},
    {"misplaced_section", "train:\n  steps: 5\n  sample: {tokens: 5}",
     "r.yaml:3:3: unknown key 'sample' in 'train'; 'sample' belongs at the top level"},
    {"misplaced_path", "mesh.dp: 5",
     "r.yaml:1:1: unknown key 'mesh.dp' at the top level; write 'dp' in 'mesh'"},
    {"section_in_itself", "train:\n  train: {steps: 5}",
     "r.yaml:2:3: unknown key 'train' in 'train'; the keys of 'train' stand directly in it"},
    {"duplicate", "train:\n  steps: 5\n  log_every: 1\n  steps: 6",
     "r.yaml:4:3: 'steps' is given twice in 'train'; first in line 2; keep one"},
    {"duplicate_section", "mesh: {dp: 1}\nmesh: {dp: 2}",
     "r.yaml:2:1: 'mesh' is given twice at the top level; first in line 1; keep one"},
    {"duplicate_quoted", "train: {\"steps\": 5, 'steps': 6}",
     "r.yaml:1:21: 'steps' is given twice in 'train'; first in line 1; keep one"},
    {"merge_key", "train:\n  <<: {steps: 5}",
     "r.yaml:2:3: recipes have no merge keys; got '<<'; put shared keys into a file and begin the "
     "section with 'use: FILE'"},
    {"key_is_null", "mesh: {~: 5}",
     "r.yaml:1:8: a key must be a word; got null, a list or a map before ':'"},
    {"key_is_list", "mesh:\n  ? [dp]\n  : 5",
     "r.yaml:2:5: a key must be a word; got null, a list or a map before ':'"},
};

const Case kValues[] = {
    {"integer", "train: {steps: ten}", "r.yaml:1:16: 'train.steps' must be an integer; got 'ten'"},
    {"integer_exponent", "train: {steps: 1e3}",
     "r.yaml:1:16: 'train.steps' must be an integer; got '1e3'; write 1000"},
    {"integer_leading_zero", "seed: 010",
     "r.yaml:1:7: 'seed' must be an integer without leading zeros, which some YAML readers take "
     "for "
     "octal; got '010'; write 10"},
    {"integer_quoted", "seed: \"5\"",
     "r.yaml:1:7: 'seed' must be an integer; got the text '5'; remove the quotes"},
    {"integer_too_large", "seed: 9223372036854775808",
     "r.yaml:1:7: 'seed' must be an integer that fits in 64 bits; got '9223372036854775808'"},
    {"integer_32_bits", "threads: 2147483648",
     "r.yaml:1:10: 'threads' must be at most 2147483647; got 2147483648"},
    {"integer_range", "seed: -1", "r.yaml:1:7: 'seed' must be at least 0; got -1"},
    {"integer_is_list", "seed: [1]", "r.yaml:1:7: 'seed' must be an integer; got a list"},
    {"integer_is_map", "seed: {a: 1}", "r.yaml:1:7: 'seed' must be an integer; got a map"},
    {"number", "data: {path: a, validation_fraction: a tenth}",
     "r.yaml:1:38: 'data.validation_fraction' must be a number; got 'a tenth'"},
    {"number_above", "data: {path: a, validation_fraction: 0}",
     "r.yaml:1:38: 'data.validation_fraction' must be in (0, 1); got 0"},
    {"number_below", "data: {path: a, validation_fraction: 1.0}",
     "r.yaml:1:38: 'data.validation_fraction' must be in (0, 1); got 1.0"},
    {"number_nan", "sample: {temperature: .nan}",
     "r.yaml:1:23: 'sample.temperature' must be a finite number; got '.nan'"},
    {"number_is_list", "sample: {temperature: [1]}",
     "r.yaml:1:23: 'sample.temperature' must be a number; got a list"},
    {"bool_yes",
     "model:\n  kind: gpt2\n  num_layers: 1\n  num_heads: 1\n  width: 1\n"
     "  context_length: 1\n  bias: yes",
     "r.yaml:7:9: 'model.bias' must be true or false; got 'yes'; write true"},
    {"bool_is_map",
     "model: {kind: gpt2, num_layers: 1, num_heads: 1, width: 1, context_length: 1, "
     "bias: {}}",
     "r.yaml:1:85: 'model.bias' must be true or false; got a map"},
    {"text_number", "data: {path: 2024}",
     "r.yaml:1:14: 'data.path' must be text; '2024' is a number to YAML; write \"2024\" with "
     "quotes"},
    {"text_is_list", "data: {path: [a]}", "r.yaml:1:14: 'data.path' must be text; got a list"},
    {"text_empty", "data: {path: \"\"}", "r.yaml:1:14: 'data.path' must not be empty"},
    {"text_zero_byte", "data: {path: \"a\\0b\"}",
     "r.yaml:1:14: 'data.path' must not hold a zero byte; got 'a\\x00b'"},
    {"enum", "train: {steps: 5, precision: int4}",
     "r.yaml:1:30: 'train.precision' must be f32, bf16 or f64; got 'int4'"},
    {"enum_close", "tokenizer: {kind: chars}",
     "r.yaml:1:19: 'tokenizer.kind' must be char or byte; got 'chars'; did you mean 'char'?"},
    {"enum_case", "tokenizer: {kind: BYTE}",
     "r.yaml:1:19: 'tokenizer.kind' must be char or byte; got 'BYTE'; did you mean 'byte'?"},
    {"enum_quoted", "tokenizer: {kind: \"byte\"}", ""},
    {"enum_is_list", "tokenizer: {kind: [char]}",
     "r.yaml:1:19: 'tokenizer.kind' must be char or byte; got a list"},
    {"null", "train: {steps: }",
     "r.yaml:1:9: 'train.steps' must be an integer; got nothing; write a value or remove the "
     "line"},
    {"null_word", "data: {path: ~}",
     "r.yaml:1:8: 'data.path' must be text; got nothing; write a value or remove the line"},
    {"null_section", "mesh:",
     "r.yaml:1:1: 'mesh' is a section; got nothing; write its keys below it, indented, or remove "
     "the "
     "line"},
    {"scalar_section", "model: gpt2",
     "r.yaml:1:8: 'model' is a section; got 'gpt2'; write 'key: value' lines below it, indented"},
    {"colon_without_space", "train:\n  steps:50",
     "r.yaml:2:3: 'train' is a section; got 'steps:50'; write 'key: value' lines below it, "
     "indented, "
     "with a space after ':'"},
    {"list_section", "train:\n  - steps: 50",
     "r.yaml:2:3: 'train' is a section; got a list; write 'key: value' lines below it, indented"},
    {"required", "data: {validation_fraction: 0.5}",
     "r.yaml:1:1: 'data.path' is required (text file to train on, relative to the working "
     "directory); "
     "write it in 'data' or give --set data.path=VALUE"},
};

const Case kYaml[] = {
    {"anchor", "seed: &a 5",
     "r.yaml:1:7: recipes have no anchors; got '&a'; write the value where it is used"},
    {"anchor_and_alias", "seed: &a 5\nthreads: *a",
     "r.yaml:1:7: recipes have no anchors; got '&a'; write the value where it is used\n"
     "r.yaml:2:10: recipes have no aliases; got '*'; write the value out"},
    {"unknown_alias", "seed: *a",
     "r.yaml:1:7: not valid YAML: the referenced anchor is not defined; see the indentation, "
     "colons "
     "and quotes here"},
    {"tag", "seed: !!int 5",
     "r.yaml:1:7: recipes have no tags; got 'tag:yaml.org,2002:int'; remove it"},
    {"tag_on_map", "mesh: !mesh {dp: 1}",
     "r.yaml:1:7: recipes have no tags; got '!mesh'; remove it"},
    {"tab", "mesh:\n\tdp: 1",
     "r.yaml:2:1: YAML is indented with spaces; got a tab; write spaces (inside text: \"\\t\")"},
    {"tab_after_spaces", "mesh:\n  \tdp: 1",
     "r.yaml:2:3: YAML is indented with spaces; got a tab; write spaces (inside text: \"\\t\")"},
    {"tabs_that_do_not_indent", "mesh:\n  dp: 1\t# comment\n\t\n\t# comment", ""},
    {"open_brace", "mesh: {dp: 1\nseed: 5", "r.yaml:2:5: not valid YAML: a '{' has no '}'"},
    {"open_bracket", "mesh: [1\nseed: 5", "r.yaml:2:5: not valid YAML: a '[' has no ']'"},
    {"open_quote", "seed: \"5",
     "r.yaml:1:1: not valid YAML: a quote that opens after this is never closed"},
    {"open_quote_of_a_key", "seed: 5\n'threads: 5",
     "r.yaml:1:7: not valid YAML: a quote that opens after this is never closed"},
    {"bad_indentation", "mesh:\n  dp: 1\n threads: 1",
     "r.yaml:3:2: not valid YAML: this fits no key above; see the indentation and the ':'"},
    {"missing_colon", "seed: 5\nthreads\nrun: {}",
     "r.yaml:3:4: not valid YAML: a ':' makes no key here; quote text that holds ': ', or see the "
     "line above"},
    {"two_colons", "seed: 5: 6",
     "r.yaml:1:8: not valid YAML: a ':' makes no key here; quote text that holds ': ', or see the "
     "line above"},
    {"bad_escape", "data: {path: \"\\q\"}",
     "r.yaml:1:17: not valid YAML: unknown escape character: q; see the indentation, colons and "
     "quotes "
     "here"},
    {"one_marked_document", "---\nseed: 5", ""},
};

std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Keys, BinderErrors, testing::ValuesIn(kKeys), name_of);
INSTANTIATE_TEST_SUITE_P(Values, BinderErrors, testing::ValuesIn(kValues), name_of);
INSTANTIATE_TEST_SUITE_P(Yaml, BinderErrors, testing::ValuesIn(kYaml), name_of);

TEST(Binder, FillsTheMessage) {
  const TempFolder folder;
  const std::string file = folder.write(
      "r.yaml", recipe_with("seed: 7\n"
                            "model:\n"
                            "  kind: gpt2\n"
                            "  num_layers: 3\n"
                            "  num_heads: 2\n"
                            "  width: 8\n"
                            "  context_length: 16\n"
                            "  bias: false\n"
                            "  activation: gelu_erf\n"
                            "train: {steps: 5000000000, precision: f64}\n"
                            "sample: {prompt: \"a\\n\\\"b\\\"\", temperature: 7.5e-1}\n"));
  recipe::Recipe recipe;
  recipe.set_threads(99);  // cleared
  const KeyPlaces places = bind_recipe(file, {}, recipe);
  EXPECT_EQ(recipe.seed(), 7);
  EXPECT_EQ(recipe.threads(), 0);
  EXPECT_EQ(recipe.model().num_layers(), 3);
  EXPECT_FALSE(recipe.model().bias());
  EXPECT_EQ(recipe.model().activation(), recipe::Model::GELU_ERF);
  EXPECT_EQ(recipe.train().steps(), 5000000000);
  EXPECT_EQ(recipe.train().precision(), recipe::Train::F64);
  EXPECT_EQ(recipe.sample().prompt(), "a\n\"b\"");
  EXPECT_EQ(recipe.sample().temperature(), 0.75);
  EXPECT_EQ(recipe.optimizer().schedule(), recipe::Optimizer::COSINE);

  EXPECT_EQ(to_string(places.at("model.width")), file + ":6:10");
  EXPECT_EQ(to_string(places.at("model.dropout")), file + ":2:1");
  EXPECT_EQ(to_string(places.at("mesh.dp")), file + ":1:1");
}

TEST(Binder, ReportsEverythingAtOnceInOrder) {
  EXPECT_EQ(
      bind_errors("task: pretain\n"
                  "model:\n"
                  "  widht: 8\n"
                  "  num_layers: 0\n"
                  "  num_layers: 1\n"
                  "  num_heads: 1\n"
                  "  context_length: 4\n"
                  "optimizer: {steps: 5}\n"
                  "tokenizer: {kind: char}\n"
                  "data: {path: a}\n",
                  {"train.log_every=0"}),
      "r.yaml:1:1: 'batch.sequences' is required (sequences of one optimizer step, over all "
      "ranks); write it in 'batch' or give --set batch.sequences=VALUE\n"
      "r.yaml:1:1: 'batch.sequence_length' is required (tokens of a sequence; at most "
      "model.context_length); write it in 'batch' or give --set batch.sequence_length=VALUE\n"
      "r.yaml:1:7: 'task' must be pretrain; got 'pretain'; did you mean 'pretrain'?\n"
      "r.yaml:2:1: 'model.kind' is required (architecture; gpt2 = learned positions, layer norm "
      "before each block, MLP of width 4 x width); write it in 'model' or give --set "
      "model.kind=VALUE\n"
      "r.yaml:3:3: unknown key 'widht' in 'model'; did you mean 'width'?\n"
      "r.yaml:4:15: 'model.num_layers' must be at least 1; got 0\n"
      "r.yaml:5:3: 'num_layers' is given twice in 'model'; first in line 4; keep one\n"
      "r.yaml:8:1: 'optimizer.peak_lr' is required (learning rate after warmup); write it in "
      "'optimizer' or give --set optimizer.peak_lr=VALUE\n"
      "r.yaml:8:13: unknown key 'steps' in 'optimizer'; 'steps' belongs in 'train'\n"
      "--set train.log_every=0: 'train.log_every' must be at least 1; got 0");
}

TEST(Binder, SyntaxErrorsAndOverridesTogether) {
  EXPECT_EQ(bind_errors("mesh: {dp: 1,", {"trian.steps=5"}),
            "r.yaml:2:1: not valid YAML: a '{' has no '}'\n"
            "--set trian.steps=5: unknown section 'trian' at the top level; did you mean 'train'?");
}

TEST(Binder, FilesThatHoldNoRecipe) {
  EXPECT_EQ(bind_errors(""), "r.yaml:1:1: the file is empty; write 'key: value' lines");
  EXPECT_EQ(bind_errors("# only a comment\n\n"),
            "r.yaml:1:1: the file is empty; write 'key: value' lines");
  EXPECT_EQ(
      bind_errors("- a\n- b\n"),
      "r.yaml:1:1: a recipe is a map of sections and keys; got a list; write 'key: value' lines");
  EXPECT_EQ(
      bind_errors("hello\n"),
      "r.yaml:1:1: a recipe is a map of sections and keys; got 'hello'; write 'key: value' lines");
  EXPECT_EQ(
      bind_errors("~\n"),
      "r.yaml:1:1: a recipe is a map of sections and keys; got nothing; write 'key: value' lines");
  EXPECT_EQ(bind_errors(std::string("seed: 1\nab\0c", 12)),
            "r.yaml:2:3: a recipe is UTF-8 text; got byte 0x00; is this the right file?");
  EXPECT_EQ(bind_errors("seed: 1\n\xFF\n"),
            "r.yaml:2:1: a recipe is UTF-8 text; got byte 0xff; is this the right file?");
  EXPECT_EQ(
      bind_errors(std::string(256 * 1024 + 1, '#')),
      "r.yaml: a recipe is at most 256 KiB of YAML; got a larger file; is this the right one?");
}

TEST(Binder, FilesThatCannotBeRead) {
  const TempFolder folder;
  const auto errors = [&](const std::string& file) -> std::string {
    recipe::Recipe recipe;
    try {
      bind_recipe(file, {}, recipe);
    } catch (const RecipeError& error) {
      return folder.shortened(error.what());
    }
    return "";
  };
  EXPECT_EQ(errors(folder.path("none.yaml")),
            "none.yaml: cannot read the file: No such file or directory; check the path and its "
            "permissions");
  folder.write("sub/file", "");
  EXPECT_EQ(errors(folder.path("sub")),
            "sub: cannot read the file: it is a folder; check the path and its permissions");
  EXPECT_EQ(errors(folder.path("sub/file/r.yaml")),
            "sub/file/r.yaml: cannot read the file: Not a directory; check the path and its "
            "permissions");
  // Opens, but reading at its start fails; also for root, whom permissions do not stop.
  EXPECT_EQ(errors("/proc/self/mem"),
            "/proc/self/mem: cannot read the file: Input/output error; check the path and its "
            "permissions");
}

TEST(Binder, ASecondDocument) {
  EXPECT_EQ(bind_errors(recipe_with("") + "---\nseed: 5\n...\n"),
            "r.yaml:8:1: a file holds one YAML document; got a second one; remove what follows");
}

TEST(Binder, TakesAByteOrderMarkAndWindowsLines) {
  EXPECT_EQ(bind_errors("\xEF\xBB\xBF" + recipe_with("")), "");
  std::string windows;
  for (char c : recipe_with("train:\n  steps: 5\n"))
    windows += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(bind_errors(windows), "");
}

TEST(Binder, SurvivesDeepNesting) {
  EXPECT_NE(bind_errors("seed: " + std::string(10000, '[')), "");
  EXPECT_NE(bind_errors("seed: " + std::string(10000, '{')), "");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += std::string(static_cast<size_t>(i) / 4, ' ') + "a:\n";
  EXPECT_NE(bind_errors(deep), "");
}

}  // namespace
}  // namespace obelisk
