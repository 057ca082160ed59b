// Linear layers whose three GEMMs have a precision each.
#include "numsim/linear/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "libnumsim/python/src/bindings.h"
#include "numsim/config/config.h"
#include "numsim/formats/decode.h"
#include "numsim/quantize/quantize.h"

namespace numsim::python {
namespace {

// Returns a message about a setting without the words that refer to the command line.
std::string OwnWords(std::string message) {
  constexpr std::string_view kPlace = "--set: ", kSection = "linear.";
  if (message.starts_with(kPlace)) message.erase(0, kPlace.size());
  for (size_t at = message.find(kSection); at != std::string::npos; at = message.find(kSection)) {
    message.erase(at, kSection.size());
  }
  return message;
}

// `settings` are texts "KEY=VALUE" with the keys of the section [linear] of a configuration.
LinearRecipe RecipeOf(const std::vector<std::string>& settings) {
  std::vector<std::string> overrides;
  for (const std::string& setting : settings) overrides.push_back("linear." + setting);
  TrainConfig config;
  try {
    SetConfigKeys(overrides, config);
    return MakeLinearRecipe(config.linear.all);
  } catch (const Error& error) {
    throw Error(OwnWords(error.what()));
  }
}

// Returns {key, value as TOML, meaning} of every setting of the linear layers of a configuration.
std::vector<ConfigKey> Settings(const TrainConfig& config = {}) {
  constexpr std::string_view kSection = "linear.";
  std::vector<ConfigKey> settings;
  for (ConfigKey& key : ConfigKeys(config)) {
    if (!key.name.starts_with(kSection)) continue;
    key.name.erase(0, kSection.size());
    settings.push_back(std::move(key));
  }
  return settings;
}

// Returns e.g. "e4m3fn block:32 e8m0", or a format alone for a plain cast.
std::string OperandText(const OperandRecipe& operand) {
  std::string text = operand.format.name;
  if (operand.Unscaled()) return text;
  text += " " + ToString(operand.layout);
  if (operand.scale_rule != ScaleRule::kAbsmax)
    text += fmt::format(" {}", ToString(operand.scale_rule));
  if (operand.delayed) text += " delayed";
  if (operand.rounding.mode != RoundingMode::kNearestEven) {
    text += fmt::format(" {}", ToString(operand.rounding.mode));
    if (operand.rounding.mode == RoundingMode::kStochastic) {
      text += fmt::format(":{}", operand.rounding.random_bits);
    }
  }
  return text;
}

// {key: TOML} of the keys of [linear] in which options differ from the defaults.
nb::dict SettingsOf(const LinearOptions& options) {
  TrainConfig config;
  const std::vector<ConfigKey> defaults = Settings(config);
  config.linear.all = options;
  const std::vector<ConfigKey> settings = Settings(config);
  nb::dict given;
  for (size_t i = 0; i < settings.size(); ++i) {
    if (settings[i].value != defaults[i].value) given[settings[i].name.c_str()] = settings[i].value;
  }
  return given;
}

// (settings of the linear layers, {pattern of layers: other settings}, whether the first and the
// last layer stay in high precision, the MLP that it needs or None) of a recipe for a model.
nb::tuple ModelRecipe(std::string_view name) {
  TrainConfig config;
  const MlpKind usual = config.model.mlp;
  ApplyTrainRecipe(name, config);
  nb::dict overrides;
  for (const LinearOverride& other : config.linear.overrides) {
    overrides[other.layers.c_str()] = SettingsOf(other.precision);
  }
  std::optional<std::string> mlp;
  if (config.model.mlp != usual) mlp = ToString(config.model.mlp);
  return nb::make_tuple(
      SettingsOf(config.linear.all), overrides, config.linear.first_last_high, mlp);
}

// (GEMM, operand A, operand B, accumulation mode, container or None) of each GEMM.
nb::list GemmsOf(const LinearRecipe& recipe) {
  nb::list gemms;
  for (const LinearGemm product : kProducts) {
    const GemmRecipe& gemm = recipe[product];
    std::optional<std::string> container;
    if (gemm.container.has_value()) container = gemm.container->name;
    gemms.append(nb::make_tuple(ToString(product),
                                OperandText(gemm.a),
                                OperandText(gemm.b),
                                ToString(gemm.accumulation),
                                container));
  }
  return gemms;
}

// Measures of an operand that a layer has quantised.
struct QuantizedOperand {
  std::string operand, format, layout;
  float least_scale = 0, largest_scale = 0;  // of elements; 0 without any
  float largest_value = 0;                   // of the format
  float amax = 0;
  ErrorMeasures error;
};

class OperandMeasures final : public LinearObserver {
 public:
  void Begin(LinearOp) override {}
  void End(LinearOp) override {}

  void Quantized(LinearOperand operand,
                 In<float> original,
                 const QuantizedMatrix& result) override {
    std::vector<float> values(original.Elements());
    QuantizedOperand row;
    row.operand = ToString(operand);
    row.format = ToString(result.format);
    row.layout = ToString(result.layout);
    const std::span<const float> scales = result.Scales();
    if (!scales.empty()) {
      const auto [least, largest] = std::ranges::minmax(scales);
      row.least_scale = least;
      row.largest_scale = largest;
    }
    row.largest_value = MaxFinite(result.format);
    row.amax = AbsmaxOfAll(original.Span());
    row.error = QuantizationError(original.Span(), result, values);
    rows_.push_back(std::move(row));
  }

  // Appends (operand, format, layout, least scale, largest scale, largest value of the format, amax,
  // measures of the error) of each operand to a list.
  void AppendTo(nb::list& list) const {
    for (const QuantizedOperand& row : rows_) {
      list.append(nb::make_tuple(row.operand,
                                 row.format,
                                 row.layout,
                                 row.least_scale,
                                 row.largest_scale,
                                 row.largest_value,
                                 row.amax,
                                 row.error));
    }
  }

 private:
  std::vector<QuantizedOperand> rows_;
};

// Returns a text that differs for recipes whose backward passes do.
std::string BackwardText(const LinearRecipe& recipe) {
  std::string text = recipe.high_precision.name;
  if (recipe.saves == LinearSaves::kQuantized) text += " quantized";
  for (const LinearGemm product : kProducts) {
    const GemmRecipe& gemm = recipe[product];
    text += fmt::format("; {} {}: {} x {} in {}, {}",
                        recipe.kind,
                        ToString(product),
                        OperandText(gemm.a),
                        OperandText(gemm.b),
                        gemm.container.has_value() ? gemm.container->name : "",
                        ToString(gemm.accumulation));
  }
  return text;
}

// The tensors that a Forward saved, and the BackwardText of its recipe.
struct HeldSaved {
  LinearSaved saved;
  std::string recipe;
};

// One layer, for one thread at a time: its calls share memory.
class HeldLinear {
 public:
  explicit HeldLinear(const LinearRecipe& recipe) : linear_(recipe), text_(BackwardText(recipe)) {}

  // `observed`, if given, gets a row per operand that is quantised.
  HeldSaved Forward(const InputOf<float>& x,
                    const InputOf<float>& w,
                    const OutputOf<float>& y,
                    uint64_t seed,
                    uint64_t stream,
                    std::optional<nb::list> observed) {
    const LinearShape shape{x.shape(0), x.shape(1), w.shape(0)};
    HeldSaved result{{}, text_};
    OperandMeasures measures;
    {
      const ArrayCall call;
      const std::scoped_lock lock(mutex_);
      linear_.Forward(Elements(x),
                      Elements(w),
                      shape,
                      Elements(y),
                      result.saved,
                      {seed, stream},
                      observed.has_value() ? &measures : nullptr);
    }
    if (observed.has_value()) measures.AppendTo(*observed);
    return result;
  }

  void Backward(const InputOf<float>& g,
                const InputOf<float>& w,
                const HeldSaved& saved,
                const std::optional<OutputOf<float>>& dx,
                const std::optional<OutputOf<float>>& dw,
                uint64_t seed,
                uint64_t stream,
                std::optional<nb::list> observed) {
    if (saved.recipe != text_) {
      throw Error::Format("saved: of the recipe {}; this layer has {}", saved.recipe, text_);
    }
    const std::span<float> none;
    const std::span<float> dx_values = dx.has_value() ? Elements(*dx) : none;
    const std::span<float> dw_values = dw.has_value() ? Elements(*dw) : none;
    OperandMeasures measures;
    {
      const ArrayCall call;
      const std::scoped_lock lock(mutex_);
      linear_.Backward(Elements(g),
                       Elements(w),
                       saved.saved,
                       dx_values,
                       dw_values,
                       {seed, stream},
                       observed.has_value() ? &measures : nullptr);
    }
    if (observed.has_value()) measures.AppendTo(*observed);
  }

  std::vector<float> Save() {
    const std::scoped_lock lock(mutex_);
    return linear_.SaveState();
  }

  void Restore(const std::vector<float>& state) {
    const std::scoped_lock lock(mutex_);
    linear_.RestoreState(state);
  }

 private:
  std::mutex mutex_;
  Linear linear_;
  std::string text_;
};

void BindRecipe(nb::module_& m) {
  nb::class_<LinearRecipe>(m, "LinearRecipe")
      .def(
          "__init__",
          [](LinearRecipe* self, const std::vector<std::string>& settings) {
            new (self) LinearRecipe(RecipeOf(settings));
          },
          nb::arg("settings"))
      .def_ro("kind", &LinearRecipe::kind)
      .def("gemms", &GemmsOf);
  // (key, default, meaning) of each setting.
  m.def("linear_settings", [] {
    nb::list rows;
    for (const ConfigKey& key : Settings()) {
      rows.append(nb::make_tuple(key.name, key.value, key.meaning));
    }
    return rows;
  });
  // (name, meaning) of each recipe for a model, and what one of them sets.
  m.def("model_recipes", [] {
    nb::list rows;
    for (const TrainRecipe& recipe : TrainRecipes()) {
      rows.append(nb::make_tuple(recipe.name, recipe.meaning));
    }
    return rows;
  });
  m.def("model_recipe", &ModelRecipe, nb::arg("name"));
  // (name, summary, source) of each kind.
  m.def("linear_kinds", [] {
    nb::list rows;
    for (const LinearKind& kind : LinearKinds()) {
      rows.append(nb::make_tuple(kind.name, kind.summary, kind.source));
    }
    return rows;
  });
  // Returns the seed of the layers of a model that is trained with this seed.
  m.def(
      "linear_seed",
      [](uint64_t seed) { return DeriveSeed(seed, RandomPurpose::kLinear); },
      nb::arg("seed"));
}

}  // namespace

void BindLinear(nb::module_& m) {
  BindRecipe(m);
  nb::class_<HeldSaved>(m, "LinearSaved")
      .def_prop_ro("tokens", [](const HeldSaved& s) { return s.saved.shape.tokens; })
      // (rows, columns) of the weights.
      .def_prop_ro(
          "weights",
          [](const HeldSaved& s) { return nb::make_tuple(s.saved.shape.out, s.saved.shape.in); })
      .def_prop_ro("bytes", [](const HeldSaved& s) { return s.saved.Bytes(); })
      // (name, format, bytes) of each tensor.
      .def_prop_ro("matrices", [](const HeldSaved& held) {
        nb::list rows;
        for (const SavedMatrix& matrix : held.saved.matrices) {
          rows.append(nb::make_tuple(matrix.name, matrix.format, matrix.Bytes()));
        }
        return rows;
      });
  nb::class_<HeldLinear>(m, "Linear")
      .def(nb::init<const LinearRecipe&>(), nb::arg("recipe"))
      // Matrices x: tokens x in, w: out x in, y: tokens x out.
      .def("forward",
           &HeldLinear::Forward,
           nb::arg("x").noconvert(),
           nb::arg("w").noconvert(),
           nb::arg("y").noconvert(),
           nb::arg("seed"),
           nb::arg("stream"),
           nb::arg("observed") = nb::none())
      .def("backward",
           &HeldLinear::Backward,
           nb::arg("g").noconvert(),
           nb::arg("w").noconvert(),
           nb::arg("saved"),
           nb::arg("dx").noconvert().none(),
           nb::arg("dw").noconvert().none(),
           nb::arg("seed"),
           nb::arg("stream"),
           nb::arg("observed") = nb::none())
      .def("save", &HeldLinear::Save)
      .def("restore", &HeldLinear::Restore, nb::arg("state"));
}

}  // namespace numsim::python
