// Linear layers whose three GEMMs have a precision each.
#include "numsim/linear/linear.h"

#include <fmt/format.h>
#include <nanobind/stl/pair.h>

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
    if (key.name == "first_last_high" || key.name == "high_last") continue;  // of a model
    settings.push_back(std::move(key));
  }
  return settings;
}

// Returns e.g. "e4m3fn block:32 e8m0", or a format alone for a plain cast.
std::string OperandText(const OperandRecipe& operand) {
  std::string text = operand.format.name;
  if (operand.Unscaled()) {
    return operand.hadamard.size == 0 ? text : text + " " + HadamardText(operand.hadamard);
  }
  text += " " + ToString(operand.layout);
  if (operand.scale_rule != ScaleRule::kAbsmax)
    text += fmt::format(" {}", ToString(operand.scale_rule));
  if (operand.delayed) text += " delayed";
  if (operand.hadamard.size != 0) text += " " + HadamardText(operand.hadamard);
  if (operand.rounding.mode != RoundingMode::kNearestEven) {
    text += fmt::format(" {}", ToString(operand.rounding.mode));
    if (operand.rounding.mode == RoundingMode::kStochastic) {
      text += fmt::format(":{}", operand.rounding.random_bits);
    }
  }
  return text;
}

}  // namespace

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

namespace {

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

  // Measures on the host, wherever the layer is: an operand of a device is copied there.
  void Quantized(LinearOperand operand,
                 ConstFloatSpan original,
                 const QuantizedMatrix& result) override {
    const QuantizedMatrix here = InOrder(result.place().IsHost() ? result : OnHost(result));
    const std::vector<float> numbers = ToVector(original);
    std::vector<float> values(numbers.size());
    QuantizedOperand row;
    row.operand = ToString(operand);
    row.format = ToString(here.format);
    row.layout = ToString(here.layout);
    const std::span<const float> scales = here.Scales();
    if (!scales.empty()) {
      const auto [least, largest] = std::ranges::minmax(scales);
      row.least_scale = least;
      row.largest_scale = largest;
    }
    row.largest_value = MaxFinite(here.format);
    row.amax = AbsmaxOfAll(numbers);
    row.error = QuantizationError(numbers, here, values);
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
  // Returns the matrix with its codes in the order of the input.
  static QuantizedMatrix InOrder(QuantizedMatrix matrix) {
    if (matrix.HasCodes()) return matrix;
    const size_t bytes = static_cast<size_t>(matrix.format.StorageBytes());
    const auto [rows, cols] = matrix.shape;
    const std::span<uint8_t> to = matrix.codes.Renew(matrix.transposed.View().Elements()).Span();
    const std::span<const uint8_t> from = matrix.transposed.Span();
    for (size_t i = 0; i < rows * cols; ++i) {
      const size_t at = i % cols * rows + i / cols;
      std::copy_n(from.data() + at * bytes, bytes, to.data() + i * bytes);
    }
    matrix.order = CodeOrder::kBoth;
    return matrix;
  }

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

// Each saved tensor begins at a multiple of 256 bytes of the caller's memory.
size_t AlignedBytes(size_t bytes) { return (bytes + 255) / 256 * 256; }

// The matrices of a call whose caller owns what is saved: x as a matrix, or its shape alone where
// Backward does not read it.
struct LentCall {
  std::optional<PlacedInput> x;
  size_t tokens = 0;
  bool bf16 = false;  // the elements of an x that is not there
  PlacedInput w;
  PlacedOutput memory;  // uint8, saved_bytes of them

  ConstFloatSpan X(Place place) const {
    if (x.has_value()) return FloatsAt(place, "linear", *x);
    const Element element = bf16 ? Element::kBfloat16 : Element::kFloat32;
    return {nullptr, {tokens, W(place).cols}, place, element};
  }
  ConstFloatSpan W(Place place) const { return FloatsAt(place, "linear", w); }
  void Attach(const Linear& linear, LinearSaved& saved) const {
    const Place place = linear.place();
    const MatrixSpan<uint8_t> all = ElementsAt<uint8_t>(place, "linear", memory);
    std::vector<MatrixSpan<uint8_t>> pieces;
    size_t at = 0;
    for (const size_t bytes : linear.SavedBytes(X(place), W(place), /*x_stays=*/true)) {
      NUMSIM_REQUIRE(at + bytes <= all.Elements(),
                     "linear: the memory of what is saved is too small");
      pieces.push_back(all.As(1, all.Elements()).Columns(at, bytes));
      at += AlignedBytes(bytes);
    }
    linear.Attach(X(place), W(place), /*x_stays=*/true, pieces, saved);
  }
};

// One layer, for one thread at a time: its calls share memory. On a device all layers do.
class HeldLinear {
 public:
  HeldLinear(const LinearRecipe& recipe, DeviceContext* context)
      : linear_(recipe, PlaceOf(context)), text_(BackwardText(recipe)) {}

  // `observed`, if given, gets a row per operand that is quantised.
  HeldSaved Forward(const InputOf<float>& x,
                    const InputOf<float>& w,
                    const OutputOf<float>& y,
                    uint64_t seed,
                    uint64_t stream,
                    std::optional<nb::list> observed) {
    HeldSaved result{{}, text_};
    Run(observed, [&](LinearObserver* observer) {
      linear_.Forward(MatrixAt<const float>(Place(), "linear", x),
                      MatrixAt<const float>(Place(), "linear", w),
                      Elements(y),
                      result.saved,
                      {seed, stream},
                      observer);
    });
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
    const auto values_of = [](const std::optional<OutputOf<float>>& array) {
      return array.has_value() ? FloatSpan(Elements(*array)) : FloatSpan();
    };
    Run(observed, [&](LinearObserver* observer) {
      linear_.Backward(Elements(g),
                       MatrixAt<const float>(Place(), "linear", w),
                       saved.saved,
                       values_of(dx),
                       values_of(dw),
                       {seed, stream},
                       observer);
    });
  }

  // Returns the bytes of memory that a Forward fills, of x tokens x inputs and w outputs x inputs
  // (bf16 or float32 in memory), and whether Backward reads x besides.
  std::pair<size_t, bool> SavedBytes(
      size_t tokens, size_t inputs, size_t outputs, bool x_bf16, bool w_bf16) const {
    const auto span = [&](size_t rows, bool bf16) {
      const Element element = bf16 ? Element::kBfloat16 : Element::kFloat32;
      return ConstFloatSpan(nullptr, {rows, inputs}, linear_.place(), element);
    };
    const std::vector<size_t> pieces =
        linear_.SavedBytes(span(tokens, x_bf16), span(outputs, w_bf16), /*x_stays=*/true);
    size_t total = 0;
    for (const size_t bytes : pieces) total += AlignedBytes(bytes);
    return {total, pieces.front() == 0 && tokens > 0};
  }

  // Forward and Backward at any place, with what is saved in memory of the caller.
  void ForwardLent(const LentCall& lent,
                   const PlacedOutput& y,
                   uint64_t seed,
                   uint64_t stream,
                   std::optional<nb::list> observed,
                   bool updates_scales) {
    const Place place = linear_.place();
    Run(observed, [&](LinearObserver* observer) {
      LinearSaved saved;
      lent.Attach(linear_, saved);
      linear_.Forward(lent.X(place),
                      lent.W(place),
                      FloatsAt(place, "linear", y),
                      saved,
                      {seed, stream},
                      observer,
                      /*x_stays=*/true,
                      {},
                      updates_scales);
    });
  }
  void BackwardLent(const LentCall& lent,
                    const PlacedInput& g,
                    const std::optional<PlacedOutput>& dx,
                    const std::optional<PlacedOutput>& dw,
                    uint64_t seed,
                    uint64_t stream,
                    std::optional<nb::list> observed,
                    bool updates_scales) {
    const Place place = linear_.place();
    const auto result = [&](const std::optional<PlacedOutput>& array) {
      return array.has_value() ? FloatsAt(place, "linear", *array) : FloatSpan();
    };
    Run(observed, [&](LinearObserver* observer) {
      LinearSaved saved;
      lent.Attach(linear_, saved);
      linear_.Backward(FloatsAt(place, "linear", g),
                       lent.W(place),
                       saved,
                       result(dx),
                       result(dw),
                       {seed, stream},
                       observer,
                       updates_scales);
    });
  }

  std::vector<float> Save() {
    const std::scoped_lock lock(Mutex());
    return linear_.SaveState();
  }

  void Restore(const std::vector<float>& state) {
    const std::scoped_lock lock(Mutex());
    linear_.RestoreState(state);
  }

 private:
  // Makes a call without the interpreter's lock, and appends what it observed to the list.
  template <typename Body>
  void Run(std::optional<nb::list>& observed, const Body& body) {
    OperandMeasures measures;
    {
      const ArrayCall call;
      const std::scoped_lock lock(Mutex());
      body(observed.has_value() ? &measures : nullptr);
    }
    if (observed.has_value()) measures.AppendTo(*observed);
  }

  std::mutex& Mutex() { return linear_.place().IsHost() ? mutex_ : DeviceMutex(); }

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
  nb::class_<LentCall>(m, "LinearLent")
      .def(
          "__init__",
          [](LentCall* self,
             const std::optional<PlacedInput>& x,
             size_t tokens,
             bool bf16,
             const PlacedInput& w,
             const PlacedOutput& memory) {
            new (self) LentCall{x, tokens, bf16, w, memory};
          },
          nb::arg("x").noconvert().none(),
          nb::arg("tokens"),
          nb::arg("bf16"),
          nb::arg("w").noconvert(),
          nb::arg("memory").noconvert());
  nb::class_<HeldLinear>(m, "Linear")
      .def(nb::init<const LinearRecipe&, DeviceContext*>(),
           nb::keep_alive<1, 3>(),
           nb::arg("recipe"),
           nb::arg("context").none() = nb::none())
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
      // The same with what is saved in an array of the caller, uint8, of saved_bytes.
      .def("saved_bytes",
           &HeldLinear::SavedBytes,
           nb::arg("tokens"),
           nb::arg("inputs"),
           nb::arg("outputs"),
           nb::arg("x_bf16"),
           nb::arg("w_bf16"))
      .def("forward_lent",
           &HeldLinear::ForwardLent,
           nb::arg("lent"),
           nb::arg("y").noconvert(),
           nb::arg("seed"),
           nb::arg("stream"),
           nb::arg("observed") = nb::none(),
           nb::arg("updates_scales") = true)
      .def("backward_lent",
           &HeldLinear::BackwardLent,
           nb::arg("lent"),
           nb::arg("g").noconvert(),
           nb::arg("dx").noconvert().none(),
           nb::arg("dw").noconvert().none(),
           nb::arg("seed"),
           nb::arg("stream"),
           nb::arg("observed") = nb::none(),
           nb::arg("updates_scales") = true)
      .def("save", &HeldLinear::Save)
      .def("restore", &HeldLinear::Restore, nb::arg("state"));
}

}  // namespace numsim::python
