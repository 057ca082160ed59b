// `numsim oracle profiles`: lists the profiles, or describes one of them.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/oracle_command.h"
#include "numsim/profiles/profile.h"

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;

constexpr SourceType kSources[] = {SourceType::kFloat32, SourceType::kFloat64};

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " ") + name;
  return text.empty() ? "-" : text;
}

// Returns the bits of the random register that one element uses, e.g. "[31:16] reversed".
std::string FieldText(const RandomLayout& layout, int element) {
  const int low = layout.shift[element];
  return fmt::format(
      "[{}:{}]{}", low + layout.bits - 1, low, layout.reversed[element] ? " reversed" : "");
}

std::string LayoutText(const RandomLayout& layout) {
  std::string text = fmt::format("{} bits:", layout.bits);
  for (int i = 0; i < layout.elements; ++i) {
    text += fmt::format("{} element {} {}", i > 0 ? "," : "", i, FieldText(layout, i));
  }
  return text;
}

RandomLayout LayoutOfTarget(const ProfileInfo& profile,
                            SourceType from,
                            const std::string& target) {
  return ProfileConversion(profile.name, from, ParseFormat(target)).random_layout();
}

Json ProfileJson(const ProfileInfo& profile) {
  Json json;
  json["name"] = profile.name;
  json["evidence"] = ToString(profile.evidence);
  json["version"] = profile.version;
  json["source"] = profile.source;
  json["note"] = profile.note;
  json["stochastic"] = profile.stochastic;
  for (const SourceType from : kSources) {
    const std::vector<std::string> targets = ProfileTargets(profile.name, from);
    json["targets"][std::string(ToString(from))] = targets;
    if (!profile.stochastic) continue;
    for (const std::string& target : targets) {
      json["random_bits"][target] = LayoutText(LayoutOfTarget(profile, from, target));
    }
  }
  return json;
}

void PrintTable() {
  for (const ProfileInfo& profile : ProfileTable()) {
    fmt::print("{:<22} {:<13} {}\n", profile.name, ToString(profile.evidence), profile.version);
    fmt::print("{:<22} {}\n", "", profile.note);
    for (const SourceType from : kSources) {
      const std::vector<std::string> targets = ProfileTargets(profile.name, from);
      if (!targets.empty()) fmt::print("{:<22} {}: {}\n", "", ToString(from), Joined(targets));
    }
  }
}

void PrintProfile(const ProfileInfo& profile) {
  const auto line = [](std::string_view key, std::string_view value) {
    fmt::print("{:<16}{}\n", key, value);
  };
  line("name", profile.name);
  line("evidence", ToString(profile.evidence));
  line("version", profile.version);
  line("source", profile.source);
  line("note", profile.note);
  for (const SourceType from : kSources) {
    const std::vector<std::string> targets = ProfileTargets(profile.name, from);
    line(fmt::format("from {}", ToString(from)), Joined(targets));
    if (!profile.stochastic) continue;
    for (const std::string& target : targets) {
      line("  " + target, LayoutText(LayoutOfTarget(profile, from, target)));
    }
  }
}

int Profiles(const std::string& name, bool json) {
  if (name.empty() && !json) {
    PrintTable();
  } else if (!json) {
    PrintProfile(FindProfile(name));
  } else if (!name.empty()) {
    fmt::print("{}\n", ProfileJson(FindProfile(name)).dump(2));
  } else {
    Json all = Json::array();
    for (const ProfileInfo& profile : ProfileTable()) all.push_back(ProfileJson(profile));
    fmt::print("{}\n", all.dump(2));
  }
  return 0;
}

}  // namespace

void AddOracleProfilesCommand(Program& program, CLI::App* oracle) {
  struct Options {
    std::string name;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* sub = oracle->add_subcommand(
      "profiles", "List the profiles: conversion rules of other implementations");
  sub->add_option("NAME", options->name, "Show only this profile, in detail");
  sub->add_flag("--json", options->json, "Print JSON");
  Example(sub, "numsim oracle profiles cuda-13");
  Choose(program, sub, [options] { return Profiles(options->name, options->json); });
}

}  // namespace numsim::apps
