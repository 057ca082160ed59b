// The study `moment-formats`: its grid of pairs, its arms, and the functions that study.toml names.
#include "experiments/moment_formats/moment_formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/runner/settings.h"
#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "numsim/moments/moment_format.h"

namespace numsim::experiments {
namespace moment_formats {
namespace {

using namespace study;

constexpr const char* kBytes = "256";  // --vocabulary: a token per byte

// ---- pairs

// Returns the storage of a format under a scaling. fp32 and the dynamic map take no other scaling.
std::string Storage(const std::string& format, const std::string& scaling) {
  if (format == "fp32" || format.starts_with("dynamic")) return format;
  return format + "@" + scaling;
}

MomentFormat Parse(std::string_view option, const std::string& text) {
  try {
    return ParseMomentFormat(text);
  } catch (const Error& error) {
    throw Error::Format("--{}: {}", option, error.what());
  }
}

// Returns the storages of the option's formats under a scaling, without formats that it does not
// support: COAT is for formats of up to 8 bits.
std::vector<std::string> StoragesOf(const Settings& settings,
                                    const char* option,
                                    const std::string& scaling) {
  const bool coat = Parse("scalings", "e4m3fn@" + scaling).scaling == MomentScaling::kCoat;
  std::vector<std::string> storages;
  for (const std::string& format : settings.GetList(option)) {
    if (format.find_first_of("@+") != std::string::npos) {
      throw Error::Format(
          "--{}: '{}' is more than a format; use --scalings for the scaling of the grid and "
          "--pairs for single pairs",
          option,
          format);
    }
    const MomentFormat moment = Parse(option, format);
    const FormatSpec& spec = moment.format.spec;
    if (coat && spec != kFp32 && spec.Bits() > 8) continue;
    const bool is_dynamic = moment.scaling == MomentScaling::kDynamic;
    storages.push_back(Storage(is_dynamic ? format : moment.format.name, scaling));
  }
  return storages;
}

// ---- the study

// Returns the maker of storages of a moment, which all have one name.
std::function<Choice(const std::string&)> StorageOf(const std::string& key) {
  return [=](const std::string& text) {
    return Choice{ToString(ParseMomentFormat(text)), {key + "=$"}};
  };
}

Keys Computed(const Settings& settings, const Arm&) {
  const int64_t steps = settings.GetInteger("steps", 1, kMostSteps);
  const int64_t every = steps / settings.GetInteger("records", 1, kMostSteps);
  Keys keys = {"data.size=$text-size",
               fmt::format("telemetry.tensors_every={}", std::max<int64_t>(1, every))};
  if (settings.Get("vocabulary") == kBytes) return keys;
  keys.emplace_back(settings.Get("text").empty() ? "data.kind=zipf" : "data.tokenizer=bpe");
  return keys;
}

std::string VocabularyText(const Settings& settings) {
  const std::string& vocabulary = settings.Get("vocabulary");
  return vocabulary == kBytes ? "" : ", vocabulary " + vocabulary;
}

std::vector<EndColumn> EndColumns() {
  return {
      {{"entropy_bound", "known lower bound of the loss; nan: none is known"},
       [](Measurement& training) {
         return Cell(training.trainer.data().EntropyBound().value_or(std::nan("")));
       }},
      {{"m_bytes", "bytes per parameter that m takes, over the whole model"},
       [](Measurement& training) { return Cell(training.trainer.optimizer().StoredBytes().m); }},
      {{"v_bytes", "bytes per parameter that v takes, over the whole model"},
       [](Measurement& training) { return Cell(training.trainer.optimizer().StoredBytes().v); }}};
}

Functions OwnFunctions() {
  Functions functions{
      .choices = {{"first-moment", StorageOf("optimizer.m")},
                  {"second-moment", StorageOf("optimizer.v")}},
      .values = {{"vocabulary", VocabularyText}},
      .evidence = {{"memory", MemoryEvidence}},
      .probes = {{"flushed", Flushed()}, {"spread", SpreadOfV()}},
      .columns = EndColumns(),
      .tables = {{"pairs", PairRows}, {"phases", PhaseRows}, {"memory", MemoryRows}},
      .figures = Figures()};
  for (const std::string update : {"fresh", "stored"}) {
    functions.evidence["epsilon-decides-" + update] = [=](const Results& results) {
      return EpsilonEvidence(results, update);
    };
  }
  return functions;
}

}  // namespace

std::string FormatPart(std::string_view storage) {
  return std::string(storage.substr(0, storage.find_first_of("@:+")));
}

std::vector<MomentPair> PairsOf(const Settings& settings) {
  std::vector<MomentPair> pairs = {kBaseline};
  const auto add =
      [&](const char* m_option, const std::string& m, const char* v_option, const std::string& v) {
        const MomentPair pair{ToString(Parse(m_option, m)), ToString(Parse(v_option, v))};
        if (std::ranges::count(pairs, pair) == 0) pairs.push_back(pair);
      };
  for (const std::string& scaling : settings.GetList("scalings")) {
    for (const std::string& v : StoragesOf(settings, "v", scaling)) {
      for (const std::string& m : StoragesOf(settings, "m", scaling)) add("m", m, "v", v);
    }
  }
  if (settings.Get("pairs") == "none") return pairs;
  for (const std::string& text : settings.GetList("pairs")) {
    const size_t slash = text.find('/');
    if (slash == std::string::npos) {
      throw Error::Format("--pairs: '{}' is not M/V, e.g. e4m3fn@tensor/e5m2@tensor", text);
    }
    add("pairs", text.substr(0, slash), "pairs", text.substr(slash + 1));
  }
  return pairs;
}

std::vector<Arm> ArmsOf(const Study& study, const Settings& settings) {
  for (const char* const option : {"epsilon", "lr", "update-from"}) {
    CheckDistinct(option, settings.GetList(option));
  }
  const std::vector<MomentPair> pairs = PairsOf(settings);
  const std::vector<std::string> updates = ValuesOf(study.axes[kUpdateFrom], settings);
  std::vector<Arm> arms;
  for (const std::string& epsilon : settings.GetList("epsilon")) {
    for (const std::string& lr : settings.GetList("lr")) {
      for (const std::string& update : updates) {
        for (const MomentPair& pair : pairs) {
          if (pair == kBaseline && update != updates.front()) continue;
          arms.push_back({pair.m, pair.v, epsilon, update, lr});
        }
      }
    }
  }
  return arms;
}

}  // namespace moment_formats

study::Study MomentFormatsStudy() {
  using namespace moment_formats;
  Study study = ReadStudy(StudyText("moment_formats"), "moment_formats/study.toml", OwnFunctions());
  study.computed = Computed;
  study.arms = ArmsOf;
  study.common.compare = Compare;
  study.notes = Notes;
  return study;
}

Experiment MomentFormats() { return study::MakeExperiment(MomentFormatsStudy()); }

}  // namespace numsim::experiments
