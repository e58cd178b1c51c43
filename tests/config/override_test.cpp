// --set: what it changes and every message about it.
#include <gtest/gtest.h>

#include "framework/base/error.h"
#include "tests/config/support.h"

namespace obelisk {
namespace {

recipe::Recipe bound(const std::string& yaml, const std::vector<std::string>& overrides) {
  const TempFolder folder;
  recipe::Recipe recipe;
  bind_recipe(folder.write("r.yaml", yaml), overrides, recipe);
  return recipe;
}

TEST(Override, WinsOverTheFileAndTheLastOneWins) {
  const std::string yaml = recipe_with("seed: 5");
  EXPECT_EQ(bound(yaml, {"seed=6"}).seed(), 6);
  EXPECT_EQ(bound(yaml, {"seed=6", "seed=7"}).seed(), 7);
  EXPECT_EQ(bound(yaml, {"model.width=16"}).model().width(), 16);
  EXPECT_EQ(bound(yaml, {"tokenizer.kind=byte"}).tokenizer().kind(), recipe::Tokenizer::BYTE);
  EXPECT_FALSE(bound(yaml, {"model.bias=false"}).model().bias());
  EXPECT_EQ(bound(yaml, {"sample.temperature=0.5"}).sample().temperature(), 0.5);
  EXPECT_NE(resolved_recipe(bound(yaml, {"seed=6"})).find("seed: 6"), std::string::npos);
}

TEST(Override, TextIsTakenAsItIs) {
  for (const std::string text : {"a: b # c", "\"quoted\"", "", "123", "null", "a=b", " x ", "\t"}) {
    EXPECT_EQ(bound(recipe_with(""), {"sample.prompt=" + text}).sample().prompt(), text);
  }
}

TEST(Override, GivesRequiredKeys) {
  const std::string yaml = recipe_with("data: {validation_fraction: 0.5}");
  EXPECT_EQ(bound(yaml, {"data.path=a.txt"}).data().path(), "a.txt");
}

TEST(Override, PlacesNameTheOverride) {
  const TempFolder folder;
  recipe::Recipe recipe;
  const std::vector<std::string> overrides = {"model.width=16"};
  const KeyPlaces places = bind_recipe(folder.write("r.yaml", recipe_with("")), overrides, recipe);
  EXPECT_EQ(to_string(places.at("model.width")), "--set model.width=16");
}

struct Case {
  std::string override;
  std::string error;  // after "--set <override>: "
};

TEST(Override, ErrorsAreExact) {
  const std::string form = "an override is section.key=value; for example --set train.steps=100";
  const Case cases[] = {
      {"", form},
      {"train.steps", form},
      {"=5", form},
      {".steps=5", form},
      {"train.=5", form},
      {"train.stpes=5", "unknown key 'stpes' in 'train'; did you mean 'steps'?"},
      {"trian.steps=5", "unknown section 'trian' at the top level; did you mean 'train'?"},
      {"steps=5", "unknown key 'steps' at the top level; 'steps' belongs in 'train'"},
      {"use=a.yaml",
       "unknown key 'use' at the top level; known at the top level: task, seed, device, threads, "
       "run, "
       "model, tokenizer, data, batch, optimizer, train, mesh and sample"},
      {"train.warmup_steps=5",
       "unknown key 'warmup_steps' in 'train'; 'warmup_steps' belongs in 'optimizer'"},
      {"train..steps=5", form},
      {"train.steps.more=5",
       "'train.steps' is a key, not a section; write --set train.steps=VALUE"},
      {"seed.more=5", "'seed' is a key, not a section; write --set seed=VALUE"},
      {"model=gpt2", "'model' is a section; set its keys, for example --set model.kind=VALUE"},
      {"train.steps=0", "'train.steps' must be at least 1; got 0"},
      {"train.steps=", "'train.steps' must be an integer; got ''"},
      {"train.steps=\"5\"", "'train.steps' must be an integer; got '\"5\"'"},
      {"model.bias=yes", "'model.bias' must be true or false; got 'yes'; write true"},
      {"data.path=", "'data.path' must not be empty"},
  };
  for (const Case& test : cases) {
    EXPECT_EQ(bind_errors(recipe_with(""), {test.override}),
              "--set " + test.override + ": " + test.error);
  }
  // Whatever the bytes, an error is one line of text.
  EXPECT_EQ(bind_errors(recipe_with(""), {"data.path=\xFF"}),
            "--set data.path=\\xff: 'data.path' must be UTF-8 text; got '\\xff'");
  EXPECT_EQ(bind_errors(recipe_with(""), {"train.steps=\n" + std::string(99, 'x')}),
            "--set train.steps=\\n" + std::string(47, 'x') +
                "...: 'train.steps' must be an integer; got '\\n" + std::string(59, 'x') + "...'");
}

TEST(Override, AllErrorsAtOnceInTheirOrder) {
  EXPECT_EQ(bind_errors(recipe_with("seed: x"), {"train.steps=0", "model.width=0"}),
            "r.yaml:1:7: 'seed' must be an integer; got 'x'\n"
            "--set train.steps=0: 'train.steps' must be at least 1; got 0\n"
            "--set model.width=0: 'model.width' must be at least 1; got 0");
}

}  // namespace
}  // namespace obelisk
