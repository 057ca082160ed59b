// Trainings that Python computes: their configuration, data, initial values and record.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "libnumsim/python/src/bindings.h"
#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/models/model.h"
#include "numsim/random/streams.h"
#include "numsim/train/recorded_run.h"
#include "numsim/train/trainer.h"

namespace numsim::python {
namespace {

// Returns an array of NumPy that owns the values.
template <typename T, typename Values>
nb::object AsArray(Values&& values, const std::vector<size_t>& shape) {
  auto held = std::make_unique<std::decay_t<Values>>(std::forward<Values>(values));
  held->reserve(1);  // an array has an address, also without elements
  auto* const data = reinterpret_cast<T*>(held->data());
  const nb::capsule owner(held.release(),
                          [](void* p) noexcept { delete static_cast<std::decay_t<Values>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner));
}

// The source of a configuration's data, and the configuration that fits it.
class HeldData {
 public:
  explicit HeldData(const TrainConfig& given) : config_(given) {
    const nb::gil_scoped_release release;
    data_ = OpenData(config_.data);
    FitToData(config_, data_->shape());
    data_->CheckBatch(Examples(), config_.model.context);
  }

  const TrainConfig& config() const { return config_; }
  // Returns another configuration with what follows from these data.
  TrainConfig Fitted(TrainConfig other) const {
    FitToData(other, data_->shape());
    return other;
  }
  const std::shared_ptr<const DataSource>& source() const { return data_; }

  // Batch `index` of the training: of part p of step s, index = s * train.accumulate + p.
  nb::tuple TrainBatch(uint64_t index) const {
    Batch batch;
    {
      const nb::gil_scoped_release release;
      const uint64_t seed = DeriveSeed(config_.train.seed, RandomPurpose::kShuffle);
      data_->TrainBatch(seed, index, Examples(), config_.model.context, batch);
    }
    return Arrays(std::move(batch));
  }

  // The number of batches of a validation.
  size_t ValidBatches() const {
    const size_t all = data_->ValidBatches(Examples(), config_.model.context);
    const size_t limit = config_.train.valid_batches;
    return limit == 0 ? all : std::min(limit, all);
  }

  nb::tuple ValidBatch(uint64_t index) const {
    if (index >= data_->ValidBatches(Examples(), config_.model.context)) {
      throw Error::Format("valid_batch: there is no batch {}", index);
    }
    Batch batch;
    {
      const nb::gil_scoped_release release;
      data_->ValidBatch(index, Examples(), config_.model.context, batch);
    }
    return Arrays(std::move(batch));
  }

 private:
  size_t Examples() const { return config_.train.batch / config_.train.accumulate; }

  // (tokens, targets, values), each an array or None.
  nb::tuple Arrays(Batch batch) const {
    const size_t n = batch.examples;
    const std::vector<size_t> text = {n, batch.length}, labels = {n};
    const DataShape& shape = data_->shape();
    const std::vector<size_t> images = {n, shape.height, shape.width, shape.channels};
    const std::vector<size_t> features = {n, shape.features};
    nb::object tokens = nb::none(), targets = nb::none(), values = nb::none();
    const bool has_text = !batch.tokens.empty();
    if (has_text) tokens = AsArray<int32_t>(std::move(batch.tokens), text);
    if (!batch.targets.empty()) {
      targets = AsArray<int32_t>(std::move(batch.targets), has_text ? text : labels);
    }
    if (!batch.values.empty()) {
      values = AsArray<float>(std::move(batch.values), shape.features > 0 ? features : images);
    }
    return nb::make_tuple(tokens, targets, values);
  }

  TrainConfig config_;
  std::shared_ptr<const DataSource> data_;
};

nb::dict ShapeOfData(const HeldData& held) {
  const DataShape& shape = held.source()->shape();
  nb::dict named;
  named["vocabulary"] = shape.vocabulary;
  named["height"] = shape.height;
  named["width"] = shape.width;
  named["channels"] = shape.channels;
  named["classes"] = shape.classes;
  named["features"] = shape.features;
  named["train_examples"] = shape.train_examples;
  named["valid_examples"] = shape.valid_examples;
  named["unit"] = shape.unit;
  return named;
}

// The library's model of a configuration, for its initial values and the names of its layers.
struct HeldModel {
  explicit HeldModel(const TrainConfig& config) {
    const ArrayCall call;
    model = MakeModel<float>(config.model, config.linear, config.train.seed);
    CheckMomentTensors(config.optimizer, model->parameters());
  }
  std::unique_ptr<Model<float>> model;
};

// (name, role, values: rows x cols) of each parameter, in the optimiser's order. The values are memory
// of the model.
nb::list ParametersOf(nb::handle self) {
  auto& held = nb::cast<HeldModel&>(self);
  nb::list list;
  for (Parameter<float>& parameter : held.model->parameters()) {
    const MatrixSpan<float> value = parameter.value.View();
    const nb::ndarray<nb::numpy, const float> array(value.data, {value.rows, value.cols}, self);
    list.append(nb::make_tuple(parameter.name, ToString(parameter.role), array));
  }
  return list;
}

// (name, {setting: TOML}) of each linear layer, in the order of their numbers.
nb::list LinearLayersOf(const HeldModel& held) {
  const std::vector<std::string> names = held.model->LinearLayers();
  const std::vector<LinearOptions> precisions = held.model->LinearLayerPrecisions();
  nb::list list;
  for (size_t i = 0; i < names.size(); ++i) {
    list.append(nb::make_tuple(names[i], SettingsOf(precisions[i])));
  }
  return list;
}

// The record of a training, and the lines about its start that the user should read.
struct HeldRun {
  HeldRun(const HeldData& data, RecordOptions options) {
    const ArrayCall call;
    options.notice = [this](const std::string& line) { notices.push_back(line); };
    run = std::make_unique<RecordedRun>(data.config(), data.source(), std::move(options));
  }
  std::vector<std::string> notices;
  std::unique_ptr<RecordedRun> run;
};

// {name: array} of the checkpoint, or None.
nb::object TakeCheckpoint(HeldRun& held) {
  std::optional<RecordedRun::Tensors> tensors = held.run->TakeCheckpoint();
  if (!tensors.has_value()) return nb::none();
  nb::dict arrays;
  for (auto& [name, array] : *tensors) {
    const bool is_float = array.type == ElementType::kF32;
    if (!is_float && array.type != ElementType::kU8) {
      throw Error::Format(
          "checkpoint: tensor '{}' is {}, expected float32 or uint8", name, ToString(array.type));
    }
    arrays[nb::cast(name)] = is_float ? AsArray<float>(std::move(array.bytes), array.shape)
                                      : AsArray<uint8_t>(std::move(array.bytes), array.shape);
  }
  return arrays;
}

// Writes the checkpoint with the tensors {name: array of float32 or uint8}.
void Save(HeldRun& held, const nb::dict& arrays) {
  RecordedRun::Tensors tensors;
  for (auto [name, value] : arrays) {
    const Input array = nb::cast<Input>(value, false);
    const bool is_float = array.dtype() == nb::dtype<float>();
    if (!is_float && array.dtype() != nb::dtype<uint8_t>()) RefuseType("checkpoint");
    Array copy{is_float ? ElementType::kF32 : ElementType::kU8, {}, {}};
    for (size_t i = 0; i < array.ndim(); ++i) copy.shape.push_back(array.shape(i));
    copy.bytes.resize(array.nbytes());
    if (!copy.bytes.empty()) std::memcpy(copy.bytes.data(), array.data(), copy.bytes.size());
    tensors.emplace_back(nb::cast<std::string>(name), std::move(copy));
  }
  const ArrayCall call;
  held.run->Save(std::move(tensors));
}

// (summary, files, {measure of the speed: number}).
nb::tuple Finish(HeldRun& held, double m, double v, double weights, double other) {
  TrainRunResult result;
  {
    const ArrayCall call;
    result = held.run->Finish({.m = m, .v = v, .weights = weights, .other = other});
  }
  nb::dict speed;
  speed["steps"] = result.speed.steps;
  speed["seconds"] = result.speed.seconds;
  speed["per_second"] = result.speed.tokens_per_second;
  speed["unit"] = result.speed.unit;
  return nb::make_tuple(result.summary, result.files, speed);
}

void BindConfig(nb::module_& m) {
  nb::class_<TrainConfig>(m, "TrainConfig")
      .def(nb::init<>())
      // `overrides` are texts "KEY=VALUE".
      .def_static(
          "read",
          [](const std::string& path, const std::vector<std::string>& overrides) {
            return ReadTrainConfig(path, overrides);
          },
          nb::arg("path"),
          nb::arg("overrides"))
      .def_static(
          "of_keys",
          [](const std::vector<std::string>& overrides) {
            return ParseTrainConfig("", "the configuration", {}, overrides);
          },
          nb::arg("overrides"))
      .def_prop_ro("toml", &WriteTrainConfig)
      // (name, value as TOML, meaning) of every key.
      .def_prop_ro("keys",
                   [](const TrainConfig& config) {
                     nb::list keys;
                     for (const ConfigKey& key : ConfigKeys(config)) {
                       keys.append(nb::make_tuple(key.name, key.value, key.meaning));
                     }
                     return keys;
                   })
      .def(
          "learning_rate",
          [](const TrainConfig& config, uint64_t step) { return config.schedule.At(step); },
          nb::arg("step"));
  m.def("train_presets", [] {
    nb::list rows;
    for (const TrainPreset& preset : TrainPresets()) {
      rows.append(nb::make_tuple(preset.name, preset.meaning));
    }
    return rows;
  });
}

void BindRun(nb::module_& m) {
  nb::class_<StepNumbers>(m, "StepNumbers")
      .def_ro("gradient_norm", &StepNumbers::gradient_norm)
      .def_ro("clip_factor", &StepNumbers::clip_factor)
      .def_ro("skipped", &StepNumbers::skipped)
      .def_ro("rms", &StepNumbers::rms)
      .def_rw("rms_tensor", &StepNumbers::rms_tensor)
      .def_ro("finite", &StepNumbers::finite);
  m.def(
      "numbers_without_step",
      [](size_t tensors) { return NumbersWithoutStep(tensors, 1); },
      nb::arg("tensors"));
  nb::class_<HeldRun>(m, "RecordedRun")
      .def(
          "__init__",
          [](HeldRun* self,
             const HeldData& data,
             const std::string& out,
             bool resume,
             bool figures,
             size_t parameters,
             std::vector<std::string> command,
             const nb::dict& versions) {
            RecordOptions options{.out = out,
                                  .resume = resume,
                                  .figures = figures,
                                  .parameters = parameters,
                                  .command = std::move(command)};
            for (auto [name, text] : versions) {
              options.versions.emplace_back(nb::cast<std::string>(name),
                                            nb::cast<std::string>(text));
            }
            new (self) HeldRun(data, std::move(options));
          },
          nb::arg("data"),
          nb::arg("out"),
          nb::arg("resume"),
          nb::arg("figures"),
          nb::arg("parameters"),
          nb::arg("command"),
          nb::arg("versions"))
      .def_ro("notices", &HeldRun::notices)
      .def("take_checkpoint", &TakeCheckpoint)
      .def_prop_ro("status", [](const HeldRun& held) { return ToString(held.run->status()); })
      .def_prop_ro("reason", [](const HeldRun& held) { return held.run->reason(); })
      .def_prop_ro("steps", [](const HeldRun& held) { return held.run->steps_taken(); })
      .def_prop_ro("recent_loss", [](const HeldRun& held) { return held.run->recent_loss(); })
      .def_prop_ro("validation_is_due",
                   [](const HeldRun& held) { return held.run->ValidationIsDue(); })
      .def(
          "add_validation",
          [](HeldRun& held, double sum, size_t counted, size_t correct) {
            held.run->AddValidation({sum, counted, correct});
          },
          nb::arg("sum"),
          nb::arg("counted"),
          nb::arg("correct"))
      .def(
          "add_step",
          [](HeldRun& held, double loss, const StepNumbers& numbers, double seconds) {
            held.run->AddStep(loss, numbers, seconds);
          },
          nb::arg("loss"),
          nb::arg("numbers"),
          nb::arg("seconds"))
      .def("save", &Save, nb::arg("tensors"))
      // `bytes` per parameter as Optimizer.bytes returns them.
      .def("finish", &Finish, nb::arg("m"), nb::arg("v"), nb::arg("weights"), nb::arg("other"));
}

}  // namespace

void BindTraining(nb::module_& m) {
  BindConfig(m);
  nb::class_<HeldData>(m, "TrainData")
      .def(nb::init<const TrainConfig&>(), nb::arg("config"))
      .def_prop_ro("config", &HeldData::config)  // after it was fitted to the data
      .def("fitted", &HeldData::Fitted, nb::arg("config"))
      .def_prop_ro("shape", &ShapeOfData)
      .def_prop_ro("description", [](const HeldData& held) { return held.source()->Describe(); })
      .def_prop_ro("entropy_bound",
                   [](const HeldData& held) { return held.source()->EntropyBound(); })
      .def("train_batch", &HeldData::TrainBatch, nb::arg("index"))
      .def_prop_ro("valid_batches", &HeldData::ValidBatches)
      .def("valid_batch", &HeldData::ValidBatch, nb::arg("index"));
  nb::class_<HeldModel>(m, "TrainModel")
      .def(nb::init<const TrainConfig&>(), nb::arg("config"))
      .def_prop_ro("parameters", &ParametersOf)
      .def_prop_ro("linear_layers", &LinearLayersOf);
  BindRun(m);
}

}  // namespace numsim::python
