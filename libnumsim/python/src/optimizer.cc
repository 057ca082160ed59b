// Optimisers over arrays: parameters that the library owns, and gradients that the caller gives.
#include "numsim/optim/optimizer.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libnumsim/python/src/bindings.h"
#include "numsim/models/parameter.h"
#include "numsim/train/recorded_run.h"

namespace numsim::python {
namespace {

// The gradient of a parameter.
struct NamedGradient {
  std::string name;
  PlacedInput values;
};

// Parameters are added first; the first step, or a look at a weight, starts the optimiser, which
// rounds them to the format of the weights. For one thread at a time: calls wait for one another.
class HeldOptimizer {
 public:
  HeldOptimizer(OptimizerConfig config,
                const LossScalerConfig& scaler,
                uint64_t seed,
                DeviceContext* context)
      : config_(std::move(config)),
        scaler_(scaler),
        seed_(seed),
        place_(PlaceOf(context)),
        parameters_(seed, InitialValues::kMeans, place_) {
    CheckOptimizerConfig(config_);
    CheckLossScalerConfig(scaler_);
  }

  void Add(
      std::string name, bool is_matrix, size_t rows, size_t cols, const InputOf<float>& value) {
    const std::scoped_lock lock(Mutex());
    if (optimizer_ != nullptr) throw Error("parameters are added before the first step");
    const ParameterRole role = is_matrix ? ParameterRole::kMatrix : ParameterRole::kGain;
    Parameter<float>& added = parameters_.Add(std::move(name), role, rows, cols, {});
    index_.emplace(added.name, parameters_.size() - 1);
    Copy(value, added.value);
  }

  // Adds a parameter of a device whose values stay in the array of the caller, which must live as
  // long as this object.
  void AddBorrowed(
      std::string name, bool is_matrix, size_t rows, size_t cols, const PlacedOutput& value) {
    const std::scoped_lock lock(Mutex());
    if (optimizer_ != nullptr) throw Error("parameters are added before the first step");
    const ParameterRole role = is_matrix ? ParameterRole::kMatrix : ParameterRole::kGain;
    const MatrixSpan<float> values = ElementsAt<float>(place_, "optimizer", value).As(rows, cols);
    const MatrixSpan<float> none(nullptr, MatrixShape{}, place_);
    Parameter<float>& added = parameters_.AddBorrowed(std::move(name), role, values, none);
    index_.emplace(added.name, parameters_.size() - 1);
  }

  std::span<const float> Weights(std::string_view name) {
    const std::scoped_lock lock(Mutex());
    Start();
    return std::as_const(parameters_[IndexOf(name)].value).Span();
  }

  // Takes a step with these gradients. Parameters without one keep their weights and states.
  // On a device it reads the caller's memory, and starts the step. See Optimizer::SetReports and
  // SetOnlyWriter.
  void Step(double learning_rate,
            const std::vector<NamedGradient>& gradients,
            bool reports,
            bool only_writer) {
    const std::scoped_lock lock(Mutex());
    Start();
    optimizer_->SetReports(reports);
    optimizer_->SetOnlyWriter(only_writer);
    std::vector<uint8_t> without(parameters_.size(), 1);
    for (const NamedGradient& gradient : gradients) {
      const size_t i = IndexOf(gradient.name);
      const auto values = ElementsAt<const float>(place_, "optimizer", gradient.values);
      Parameter<float>& parameter = parameters_[i];
      const MatrixShape shape = std::as_const(parameter.value).View().Shape();
      if (values.Elements() != shape.Elements()) {
        throw Error::Format("expected {} elements, found {}", shape.Elements(), values.Elements());
      }
      if (place_.IsHost()) {
        std::ranges::copy(values.Span(), parameter.gradient.Span().begin());
      } else {
        // A step reads gradients, and does not write them.
        parameter.gradient.Borrow({const_cast<float*>(values.data), values.Shape(), place_});
        parameter.gradient.Resize(shape.rows, shape.cols);
      }
      without[i] = 0;
    }
    optimizer_->Step(learning_rate, step_, place_.IsHost(), without);
    ++step_;
  }

  // The result of the last step. Waits for a device.
  OptimizerStep Last() {
    const std::scoped_lock lock(Mutex());
    Start();
    return optimizer_->Last();
  }

  // The same for a row of train.csv.
  StepNumbers Numbers() {
    const std::scoped_lock lock(Mutex());
    Start();
    return NumbersOf(optimizer_->Last(), parameters_);
  }

  Optimizer::Bytes StoredBytes() {
    const std::scoped_lock lock(Mutex());
    Start();
    return optimizer_->StoredBytes();
  }

  // The number of steps taken, and the state after them.
  struct State {
    uint64_t steps = 0;
    std::vector<NamedBytes> pieces;
  };
  State Save() {
    const std::scoped_lock lock(Mutex());
    Start();
    return {step_, optimizer_->Save()};
  }
  void Restore(const State& state) {
    const std::scoped_lock lock(Mutex());
    Start();
    optimizer_->Restore(state.pieces);
    step_ = state.steps;
  }

 private:
  std::mutex& Mutex() { return place_.IsHost() ? mutex_ : DeviceMutex(); }

  static void Copy(const InputOf<float>& from, Buffer<float>& to) {
    if (from.size() != to.Span().size()) {
      throw Error::Format("expected {} elements, found {}", to.Span().size(), from.size());
    }
    std::ranges::copy(Elements(from), to.Span().begin());
  }

  size_t IndexOf(std::string_view name) const {
    const auto found = index_.find(name);
    if (found == index_.end()) throw Error::Format("there is no parameter '{}'", name);
    return found->second;
  }

  void Start() {
    if (optimizer_ != nullptr) return;
    optimizer_ = std::make_unique<Optimizer>(config_, scaler_, parameters_, seed_);
  }

  std::mutex mutex_;
  OptimizerConfig config_;
  LossScalerConfig scaler_;
  uint64_t seed_;
  uint64_t step_ = 0;
  Place place_;
  ParameterList<float> parameters_;
  std::unordered_map<std::string_view, size_t> index_;  // of parameters_, by their names there
  std::unique_ptr<Optimizer> optimizer_;
};

constexpr std::pair<std::string_view, bool StableOptions::*> kStableFlags[] = {
    {"stable.clipped_decay", &StableOptions::clipped_decay},
    {"stable.epsilon_added", &StableOptions::epsilon_added},
    {"stable.previous_u", &StableOptions::previous_u},
    {"stable.of_update", &StableOptions::of_update},
    {"stable.of_moment", &StableOptions::of_moment},
    {"stable.global", &StableOptions::global},
};

// Returns the library's default configuration with the given settings in their places.
OptimizerConfig ConfigOf(const nb::dict& settings) {
  OptimizerConfig config;
  for (auto [key, given] : settings) {
    const nb::handle value = given;  // a binding cannot be captured before clang 16
    const std::string name = nb::cast<std::string>(key);
    const auto text = [&] { return nb::cast<std::string>(value); };
    const auto number = [&] { return nb::cast<double>(value); };
    if (name == "kind") config.kind = ParseOptimizerKind(text());
    if (name == "beta1") config.beta1 = number();
    if (name == "beta2") config.beta2 = number();
    if (name == "epsilon") config.epsilon = number();
    if (name == "weight_decay") config.weight_decay = number();
    if (name == "decay_filter") config.decay_filter = ParseDecayFilter(text());
    if (name == "clip_norm") config.clip_norm = number();
    if (name == "beta2_decay") config.beta2_decay = number();
    if (name == "moment_minimum") config.moment_minimum = nb::cast<size_t>(value);
    if (name == "stable.threshold") config.stable.threshold = number();
    for (const auto& [flag, field] : kStableFlags) {
      if (name == flag) config.stable.*field = nb::cast<bool>(value);
    }
    if (name == "m") config.m = ParseMomentFormat(text());
    if (name == "v") config.v = ParseMomentFormat(text());
    if (name == "moment_filter") config.moment_filter = ParseMomentFilter(text());
    if (name == "moment_tensors") config.moment_tensors = text();
    if (name == "update_from_stored") config.update_from_stored = nb::cast<bool>(value);
    if (name == "weights") config.weights = ParseFormat(text());
    if (name == "update") config.update = ParseUpdateRule(text());
  }
  return config;
}

// Returns work(), which may round the weights and waits for steps of other threads.
template <typename Work>
auto WithoutLock(const Work& work) {
  const ArrayCall call;
  return work();
}

// (number of steps, {name: bytes}). A name may hold any character, also NUL.
nb::tuple Save(HeldOptimizer& held) {
  const HeldOptimizer::State state = WithoutLock([&] { return held.Save(); });
  nb::dict pieces;
  for (const NamedBytes& piece : state.pieces) {
    pieces[nb::cast(piece.name)] = nb::bytes(piece.bytes.data(), piece.bytes.size());
  }
  return nb::make_tuple(state.steps, pieces);
}

void Restore(HeldOptimizer& held, uint64_t steps, const nb::dict& pieces) {
  HeldOptimizer::State state{steps, {}};
  for (auto [name, value] : pieces) {
    const nb::bytes bytes = nb::cast<nb::bytes>(value);
    const auto* data = static_cast<const std::byte*>(bytes.data());
    state.pieces.push_back({nb::cast<std::string>(name), {data, data + bytes.size()}});
  }
  WithoutLock([&] { held.Restore(state); });
}

// (norm of the gradient, RMS, largest update, weights that moved, elements of m and of v that were
// flushed) of each tensor.
nb::list TensorSteps(const OptimizerStep& step) {
  nb::list list;
  for (const TensorStep& tensor : step.tensors) {
    list.append(nb::make_tuple(tensor.gradient_norm,
                               tensor.rms,
                               tensor.max_update,
                               tensor.weights.moved,
                               tensor.m.flushed,
                               tensor.v.flushed));
  }
  return list;
}

// Takes a step with the gradients {name: contiguous float32 array}.
void Step(HeldOptimizer& held,
          double learning_rate,
          const nb::dict& gradients,
          bool reports,
          bool only_writer) {
  std::vector<NamedGradient> given;
  for (auto [name, values] : gradients) {
    given.push_back({nb::cast<std::string>(name), nb::cast<PlacedInput>(values, false)});
  }
  WithoutLock([&] { held.Step(learning_rate, given, reports, only_writer); });
}

// (skipped, finite, norm of all gradients, clip factor, TensorSteps) of the last step.
nb::tuple Last(HeldOptimizer& held) {
  const OptimizerStep step = WithoutLock([&] { return held.Last(); });
  return nb::make_tuple(
      step.skipped, step.finite, step.gradient_norm, step.clip_factor, TensorSteps(step));
}

}  // namespace

void BindOptimizer(nb::module_& m) {
  nb::class_<HeldOptimizer>(m, "Optimizer")
      .def(
          "__init__",
          [](HeldOptimizer* self, const nb::dict& settings, uint64_t seed, DeviceContext* context) {
            new (self) HeldOptimizer(ConfigOf(settings), {}, seed, context);
          },
          nb::keep_alive<1, 4>(),
          nb::arg("settings"),
          nb::arg("seed"),
          nb::arg("context").none() = nb::none())
      .def("add",
           &HeldOptimizer::Add,
           nb::arg("name"),
           nb::arg("is_matrix"),
           nb::arg("rows"),
           nb::arg("cols"),
           nb::arg("value").noconvert())
      .def("add_borrowed",
           &HeldOptimizer::AddBorrowed,
           nb::arg("name"),
           nb::arg("is_matrix"),
           nb::arg("rows"),
           nb::arg("cols"),
           nb::arg("value").noconvert())
      .def(
          "weights",
          [](nb::handle self, std::string_view name) {
            auto& held = nb::cast<HeldOptimizer&>(self);
            const std::span<const float> w = WithoutLock([&] { return held.Weights(name); });
            return nb::ndarray<nb::numpy, const float>(w.data(), {w.size()}, self);
          },
          nb::arg("name"))
      .def("save", &Save)
      .def("restore", &Restore, nb::arg("steps"), nb::arg("pieces"))
      .def("bytes",
           [](HeldOptimizer& held) {
             const Optimizer::Bytes b = WithoutLock([&] { return held.StoredBytes(); });
             return nb::make_tuple(b.m, b.v, b.weights, b.other);
           })
      .def("step",
           &Step,
           nb::arg("learning_rate"),
           nb::arg("gradients"),
           nb::arg("reports") = true,
           nb::arg("only_writer") = false)
      .def("last", &Last)
      .def("numbers",
           [](HeldOptimizer& held) { return WithoutLock([&] { return held.Numbers(); }); });
}

}  // namespace numsim::python
