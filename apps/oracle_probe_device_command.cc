// `numsim oracle probe-device`: finds the accumulation modes of this device's tensor cores.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/oracle_command.h"
#include "numsim/backend/device.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/mma_probe/mma_probe.h"
#include "numsim/mma_probe/tensor_core.h"

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;

struct ProbeOptions {
  bool json = false;
  std::string unit;  // part of the name of a unit
  uint64_t products = numsim::ProbeOptions{}.products;
  std::string simulate, operands;
};

struct Asked {
  TensorCore unit;
  std::string unavailable;
};

// The units to probe and facts about their device.
struct Subject {
  std::vector<std::pair<std::string, std::string>> facts;  // such as "device", "NVIDIA H200"
  std::vector<Asked> units;
};

FormatSpec Operand(const Format& format) {
  if (!format.spec.IsSigned() || format.spec.zero == Zero::kNone || format.spec.mantissa_bits < 1) {
    throw Error::Format(
        "--operands: {} has no sign, no zero or no mantissa; tensor cores do not support that",
        format.name);
  }
  return format.spec;
}

Subject Simulated(const ProbeOptions& options) {
  const AccumulationMode mode = ParseAccumulationMode(options.simulate);
  if (mode.kind == AccumulationKind::kLibrary) {
    throw Error("--simulate: library has no defined order and cannot be simulated");
  }
  if (IsBlockScaled(mode)) {
    throw Error::Format("--simulate: {} takes scales of blocks, which are not probed",
                        options.simulate);
  }
  const std::vector<Format> formats = ParseFormatList(options.operands);
  if (formats.empty() || formats.size() > 2) {
    throw Error::Format("--operands: '{}' is not one or two formats", options.operands);
  }
  Subject subject;
  subject.units.push_back(
      {SimulatedUnit(mode, Operand(formats.front()), Operand(formats.back())), ""});
  return subject;
}

Subject FindSubject(const ProbeOptions& options) {
  if (!options.simulate.empty()) return Simulated(options);
  if (!DeviceAvailable()) {
    throw Error::Format("probe-device: {}; --simulate probes a simulated unit without a device",
                        DeviceUnavailable());
  }
  Subject subject;
  if constexpr (NUMSIM_HAVE_CUDA) {
    const DeviceInfo& device = Device();
    const int capability = device.compute_capability;
    subject.facts = {{"device", device.name},
                     {"compute capability", fmt::format("{}.{}", capability / 10, capability % 10)},
                     {"driver", device.driver},
                     {"runtime", device.runtime},
                     {"library", DeviceGemmLibrary()}};
    for (DeviceUnit& unit : DeviceUnits()) {
      subject.units.push_back({std::move(unit.unit), std::move(unit.unavailable)});
    }
  }
  return subject;
}

std::string OperandsText(const TensorCore& unit) {
  return fmt::format("{} x {}", ToString(unit.a), ToString(unit.b));
}

// Keeps only the units whose names contain options.unit.
void Select(const ProbeOptions& options, Subject& subject) {
  std::string names;
  for (const Asked& asked : subject.units) {
    names += fmt::format("{}{}", names.empty() ? "" : "; ", asked.unit.name);
  }
  std::erase_if(subject.units, [&](const Asked& asked) {
    return asked.unit.name.find(options.unit) == std::string::npos;
  });
  if (subject.units.empty()) {
    throw Error::Format("--unit: no unit has '{}' in its name; there are {}", options.unit, names);
  }
}

// Returns the observed value, or null if there is none.
template <typename T>
Json OrNull(const std::optional<T>& seen) {
  return seen ? Json(*seen) : Json();
}

Json SeenJson(const UnitObservations& seen) {
  Json json;
  json["kept_bits"] = OrNull(seen.kept_bits);
  json["kept_bits_at_least"] = seen.kept_bits_at_least;
  json["result_bits"] = OrNull(seen.result_bits);
  json["together"] = seen.together;
  json["chunk"] = OrNull(seen.chunk);
  json["promotion"] = OrNull(seen.promotion);
  json["flushes_subnormals"] = OrNull(seen.flushes_subnormals);
  json["least_bit"] = OrNull(seen.least_bit);
  json["text"] = ObservationLines(seen);
  return json;
}

Json ProbeJson(const MmaProbe& probe) {
  Json json;
  json["found"] = FoundText(probe);
  Json modes = Json::array();
  for (const AccumulationMode& mode : probe.modes) modes.push_back(DefinitionText(mode));
  json["rules"] = modes;
  json["closest"] = DefinitionText(probe.closest);
  json["same"] = probe.Same();
  json["compared"] = probe.Compared();
  Json kinds;
  for (const ProbeAgreement& count : probe.agreement) {
    kinds[count.kind] = {{"same", count.same}, {"compared", count.compared}};
  }
  json["agreement"] = kinds;
  json["seen"] = SeenJson(probe.seen);
  return json;
}

int PrintJson(const ProbeOptions& options, const Subject& subject) {
  Json all;
  for (const auto& fact : subject.facts) all[fact.first] = fact.second;
  all["units"] = Json::array();
  for (const Asked& asked : subject.units) {
    Json json;
    json["unit"] = asked.unit.name;
    json["operands"] = OperandsText(asked.unit);
    if (asked.unavailable.empty()) {
      json.update(ProbeJson(ProbeUnit(asked.unit, {.products = options.products})));
    } else {
      json["unavailable"] = asked.unavailable;
    }
    all["units"].push_back(json);
  }
  fmt::print("{}\n", all.dump(2));
  return 0;
}

// Prints one line per unit as soon as it is probed. Also prints all observations if there is only
// one unit or if --unit was given.
int PrintTable(const ProbeOptions& options, const Subject& subject) {
  constexpr const char* kColumns = "{:<48} {:<16} {:<40} {}\n";
  for (const auto& fact : subject.facts) fmt::print("{}: {}\n", fact.first, fact.second);
  fmt::print(kColumns, "unit", "operands", "rule", "agreement");
  const bool details = subject.units.size() == 1 || !options.unit.empty();
  for (const Asked& asked : subject.units) {
    const std::string operands = OperandsText(asked.unit);
    if (!asked.unavailable.empty()) {
      fmt::print(kColumns, asked.unit.name, operands, "not probed: " + asked.unavailable, "");
      continue;
    }
    const MmaProbe probe = ProbeUnit(asked.unit, {.products = options.products});
    fmt::print(kColumns, asked.unit.name, operands, FoundText(probe), AgreementText(probe));
    if (details) {
      for (const std::string& line : ProbeLines(probe)) fmt::print("  {}\n", line);
    }
    std::fflush(stdout);
  }
  return 0;
}

int Probe(const ProbeOptions& options) {
  Subject subject = FindSubject(options);
  Select(options, subject);
  return options.json ? PrintJson(options, subject) : PrintTable(options, subject);
}

}  // namespace

void AddOracleProbeDeviceCommand(Program& program, CLI::App* oracle) {
  auto options = std::make_shared<ProbeOptions>();
  CLI::App* sub = oracle->add_subcommand(
      "probe-device", "Find the accumulation modes of this device's tensor cores");
  sub->add_flag("--json", options->json, "Print JSON");
  sub->add_option("--unit",
                  options->unit,
                  "Probe only units whose name contains this text, and print all observations")
      ->check(NotEmpty());
  sub->add_option(
         "--products", options->products, "Approximate number of dot products to compare per unit")
      ->check(CLI::Range(uint64_t{0}, uint64_t{1} << 40))
      ->capture_default_str();
  CLI::Option* simulate =
      sub->add_option("--simulate",
                      options->simulate,
                      "Probe a simulated unit with this accumulation mode (see `numsim oracle "
                      "accumulation-modes`) instead of the device")
          ->check(NotEmpty());
  CLI::Option* operands =
      sub->add_option("--operands",
                      options->operands,
                      "Operand formats of the simulated unit: FORMAT or FORMAT,FORMAT")
          ->check(NotEmpty());
  simulate->needs(operands);
  operands->needs(simulate);
  Example(sub, "numsim oracle probe-device --simulate hopper-fp8-fast --operands e4m3fn");
  Choose(program, sub, [options] { return Probe(*options); });
}

}  // namespace numsim::apps
