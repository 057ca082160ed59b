#include "experiments/shared/paper_training.h"

#include <algorithm>
#include <iterator>

namespace numsim::experiments {
namespace {

constexpr const char* kPaperChosen = "Chosen for the run.";
constexpr const char* kPaperOutOfReach = "Out of reach of a run of minutes.";
constexpr const char* kPaperSmallerModels = "Smaller models take larger rates.";

// A setting of both papers. An empty value: the paper says nothing, or the experiment has its own
// row. kOfPaperPreset: the value of the preset `paper`, since the figures of a paper differ in it.
constexpr const char* kOfPaperPreset = "preset";
struct CommonSetting {
  const char* option;
  const char* switchback;
  const char* fishman;
  const char* reason;
};

constexpr CommonSetting kCommonSettings[] = {
    {"model", "clip", "", "The paper trains CLIP alone."},
    {"models", "clip", "", "The paper trains CLIP alone."},
    {"size", kOfPaperPreset, kOfPaperPreset, kPaperOutOfReach},
    {"sizes", kOfPaperPreset, kOfPaperPreset, kPaperOutOfReach},
    {"sizes-clip", kOfPaperPreset, "", kPaperOutOfReach},
    {"layers", kOfPaperPreset, kOfPaperPreset, kPaperOutOfReach},
    {"width", kOfPaperPreset, kOfPaperPreset, kPaperOutOfReach},
    {"context", "", "4096", kPaperOutOfReach},
    {"vocabulary", "", "32000", "Bytes, unless the value says otherwise: 256."},
    {"image", "224", "", "Generated images are simple."},
    {"batch", "16384", "1024", kPaperOutOfReach},
    {"batches-clip", "16384", "", kPaperOutOfReach},
    {"steps", "20000", "500000", kPaperOutOfReach},
    {"warmup", "5000", "2000", kPaperChosen},
    {"lr", "2e-3", "3e-4", kPaperSmallerModels},
    {"lr-clip", "2e-3", "", kPaperSmallerModels},
    {"final-lr", "0", "0.1", kPaperChosen},
    {"optimizer", "stable-adamw", "adamw", kPaperChosen},
    {"epsilon", "1e-6", "1e-5", kPaperChosen},
    {"beta2", "0.99", "0.95", kPaperChosen},
    {"weight-decay", "0.2", "0.1", kPaperChosen},
    {"clip", "0", "1", kPaperChosen},
    {"patch-dropout", "0.5", "", kPaperChosen},
    {"storage", "bf16", "", kPaperChosen},
};

// Returns where the paper says so.
const char* PaperSourceOf(Paper paper, std::string_view option) {
  if (paper == Paper::kFishman) return "Section 6.1: as Llama 2";
  if (option == "epsilon") return "Appendix F";
  if (option == "optimizer") return "Section 3.5";
  if (option == "image") return "CLIP's own size";
  if (option == "storage") return "Section 2.2.1: 16 bits";
  return "Sections 2.2.2 and 3.2";
}

PaperSetting PaperDataOf(Paper paper) {
  if (paper == Paper::kFishman) {
    return {"",
            "The paper trains on the tokens of Red Pajama",
            "Section 6.1",
            "Here text is generated, or the file of --text."};
  }
  return {
      "",
      "The paper trains on LAION-2B",
      "Sections 2.2.2 and 3.2",
      "Here data are generated (images with captions; text for llama), unless a file is given."};
}

bool HasSettingOf(const std::vector<PaperSetting>& settings, std::string_view option) {
  return std::any_of(settings.begin(), settings.end(), [&](const PaperSetting& setting) {
    return setting.option == option;
  });
}

}  // namespace

std::vector<PaperSetting> PaperTraining(Paper paper,
                                        const std::vector<Option>& options,
                                        std::vector<PaperSetting> others) {
  std::vector<PaperSetting> settings;
  for (const CommonSetting& row : kCommonSettings) {
    const auto option = std::find_if(
        options.begin(), options.end(), [&](const Option& o) { return o.name == row.option; });
    std::string value = paper == Paper::kSwitchBack ? row.switchback : row.fishman;
    if (value.empty() || option == options.end() || HasSettingOf(others, row.option)) continue;
    if (value == kOfPaperPreset) value = option->paper;
    settings.push_back({row.option, value, PaperSourceOf(paper, row.option), row.reason});
  }
  settings.push_back(PaperDataOf(paper));
  std::move(others.begin(), others.end(), std::back_inserter(settings));
  return settings;
}

}  // namespace numsim::experiments
