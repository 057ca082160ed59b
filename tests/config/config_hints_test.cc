// Hints of unknown keys: typos, and the names that other programs use.
#include <algorithm>
#include <sstream>

#include "numsim/config/config.h"
#include "numsim/config/internal/config_names.h"
#include "numsim/config/shared/config_table.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

constexpr const char* kNoHint = "`numsim train --describe-config` lists all keys";

// The end of the message about a key that does not exist, after "no such key; " or "... section; ".
std::string Hint(const std::string& toml) {
  const std::string message = ErrorOf([&] { ParseTrainConfig(toml, "f.toml", "/folder", {}); });
  const size_t end = message.find("; ");
  return end == std::string::npos ? message : message.substr(end + 2);
}

std::vector<std::string> AllKeys() {
  std::vector<std::string> names;
  for (const ConfigKey& key : ConfigKeys(TrainConfig())) names.push_back(key.name);
  return names;
}

TEST(ConfigHints, KnowTheNamesOfOtherPrograms) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"lr", "schedule.peak"},
      {"optimizer.lr", "schedule.peak"},
      {"train.lr", "schedule.peak"},
      {"train.learning_rate", "schedule.peak"},
      {"train.learning-rate", "schedule.peak"},
      {"train.LR", "schedule.peak"},
      {"schedule.warmup_steps", "schedule.warmup"},
      {"model.depth", "model.layers"},
      {"model.n_layers", "model.layers"},
      {"num_layers", "model.layers"},
      {"model.dim", "model.width"},
      {"model.d_model", "model.width"},
      {"hidden_size", "model.width"},
      {"model.n_heads", "model.heads"},
      {"model.seq_len", "model.context"},
      {"data.block_size", "model.context"},
      {"linear.block_size", "linear.block"},
      {"train.batch_size", "train.batch"},
      {"train.epochs", "train.steps"},
      {"max_steps", "train.steps"},
      {"seed", "train.seed"},
      {"optimizer.seed", "train.seed"},
      {"optimizer.betas", "optimizer.beta1 and optimizer.beta2"},
      {"optimizer.eps", "optimizer.epsilon"},
      {"model.eps", "model.norm_epsilon"},
      {"weight_decay", "optimizer.weight_decay"},
      {"train.grad_clip", "optimizer.clip_norm"},
      {"optimizer.name", "optimizer.kind"},
      {"train.eval_interval", "train.valid_every"},
      {"save_every", "checkpoint.every"},
      {"linear.recipe", "recipe"},
  };
  for (const auto& [typed, meant] : cases) {
    EXPECT_EQ(Hint(typed + " = 1"), "did you mean " + meant + "?") << typed;
  }
}

TEST(ConfigHints, AreAbsentWithoutANearKey) {
  for (const char* const typed : {"model.dropout",
                                  "dropout",
                                  "x",
                                  "optimizer.x",
                                  "train.zzz",
                                  "model.vocab_size",
                                  "optimizer.fused"}) {
    EXPECT_EQ(Hint(std::string(typed) + " = 1"), kNoHint) << typed;
  }
}

TEST(ConfigHints, NameTheSectionOfASection) {
  EXPECT_EQ(Hint("[optimiser]\nbeta2 = 1"), "did you mean optimizer?");
  EXPECT_EQ(Hint("[optim]\nlr = 1"), "did you mean optimizer?");
  EXPECT_EQ(Hint("[training]\nsteps = 1"), "did you mean train?");
  EXPECT_EQ(Hint("[optimizer.stabel]"), "did you mean optimizer.stable?");
  EXPECT_EQ(Hint("[wandb]"), kNoHint);
}

TEST(ConfigHints, OfLayersStayWithThem) {
  EXPECT_EQ(Hint("[[linear.override]]\nlayers = 'a'\nblock_siz = 1"), kNoHint);
  EXPECT_EQ(Hint("[[linear.override]]\nlayers = 'a'\nblok = 1"),
            "did you mean linear.override.0.block?");
}

// Each row of the table leads to keys that exist, and no name stands twice or is itself a key.
TEST(ConfigHints, OtherNamesLeadToKeysAndAreNone) {
  std::vector<std::string> keys = AllKeys();
  keys.emplace_back(kRecipeKey);
  const auto is_key = [&](const std::string& name) {
    return std::find(keys.begin(), keys.end(), name) != keys.end();
  };
  std::vector<std::string> seen;
  for (const OtherNames& other : AllOtherNames()) {
    std::istringstream meant{std::string(other.key)}, names{std::string(other.names)};
    for (std::string key; meant >> key;) EXPECT_TRUE(key == "and" || is_key(key)) << key;
    for (std::string name; names >> name;) {
      EXPECT_FALSE(is_key(name)) << name;
      EXPECT_EQ(std::count(seen.begin(), seen.end(), name), 0) << name;
      seen.push_back(name);
    }
  }
  EXPECT_GT(seen.size(), 100u);
}

}  // namespace
}  // namespace numsim
