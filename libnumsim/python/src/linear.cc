// Linear layers whose three GEMMs have a precision each.
#include "numsim/linear/linear.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <utility>

#include "libnumsim/python/src/bindings.h"
#include "numsim/config/config.h"

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

// Returns {key, default as TOML, meaning} of every setting of a recipe.
std::vector<ConfigKey> Settings() {
  constexpr std::string_view kSection = "linear.";
  std::vector<ConfigKey> settings;
  for (ConfigKey& key : ConfigKeys({})) {
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

  HeldSaved Forward(const InputOf<float>& x,
                    const InputOf<float>& w,
                    const OutputOf<float>& y,
                    uint64_t seed,
                    uint64_t stream) {
    const LinearShape shape{x.shape(0), x.shape(1), w.shape(0)};
    HeldSaved result{{}, text_};
    const ArrayCall call;
    const std::scoped_lock lock(mutex_);
    linear_.Forward(Elements(x), Elements(w), shape, Elements(y), result.saved, {seed, stream});
    return result;
  }

  void Backward(const InputOf<float>& g,
                const InputOf<float>& w,
                const HeldSaved& saved,
                const std::optional<OutputOf<float>>& dx,
                const std::optional<OutputOf<float>>& dw,
                uint64_t seed,
                uint64_t stream) {
    if (saved.recipe != text_) {
      throw Error::Format("saved: of the recipe {}; this layer has {}", saved.recipe, text_);
    }
    const std::span<float> none;
    const std::span<float> dx_values = dx.has_value() ? Elements(*dx) : none;
    const std::span<float> dw_values = dw.has_value() ? Elements(*dw) : none;
    const ArrayCall call;
    const std::scoped_lock lock(mutex_);
    linear_.Backward(Elements(g), Elements(w), saved.saved, dx_values, dw_values, {seed, stream});
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
           nb::arg("stream"))
      .def("backward",
           &HeldLinear::Backward,
           nb::arg("g").noconvert(),
           nb::arg("w").noconvert(),
           nb::arg("saved"),
           nb::arg("dx").noconvert().none(),
           nb::arg("dw").noconvert().none(),
           nb::arg("seed"),
           nb::arg("stream"))
      .def("save", &HeldLinear::Save)
      .def("restore", &HeldLinear::Restore, nb::arg("state"));
}

}  // namespace numsim::python
