#include "experiments/study/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "experiments/study/name_list.h"
#include "numsim/base/nearest_name.h"
#include "numsim/config/toml_document.h"

namespace numsim::experiments::study {
namespace {

using Kind = ConfigValue::Kind;

constexpr int64_t kMostWhole = 1000000;

std::string Replaced(std::string text, const std::map<std::string, std::string>& words) {
  for (const auto& [name, value] : words) {
    const std::string braced = "{" + name + "}";
    for (size_t at = text.find(braced); at != text.npos; at = text.find(braced, at)) {
      text.replace(at, braced.size(), value);
      at += value.size();
    }
  }
  return text;
}

std::string TomlOf(const ConfigValue& value) {
  switch (value.kind) {
    case Kind::kFlag:
      return FlagText(value.flag);
    case Kind::kWhole:
      return fmt::format("{}", value.whole);
    case Kind::kReal:
      return RealText(value.real);
    case Kind::kText:
      return QuotedText(value.text);
    case Kind::kArray:
      return fmt::format("[{}]", NameList(value.elements, TomlOf));
    case Kind::kDate:
    case Kind::kTable:
      break;
  }
  return "";  // no key takes a date
}

}  // namespace

Node Node::Read(std::string_view document, std::string_view name) {
  Node root;
  root.place_ = std::string(name);
  root.value_.kind = Kind::kTable;
  for (const ConfigEntry& entry : ReadToml(document, name)) {
    Node* node = &root;
    for (size_t begin = 0; begin <= entry.key.size();) {
      const size_t end = std::min(entry.key.find('.', begin), entry.key.size());
      const std::string part = entry.key.substr(begin, end - begin);
      Node* child = node->Child(part);
      if (child == nullptr) {
        child = &node->children_.emplace_back();
        child->key_ = part;
        child->place_ = entry.place;
        child->value_.kind = Kind::kTable;
      }
      node = child;
      begin = end + 1;
    }
    node->value_ = entry.value;
    node->place_ = entry.place;
  }
  return root;
}

Node* Node::Child(std::string_view key) {
  const auto found = std::ranges::find(children_, key, &Node::key_);
  return found == children_.end() ? nullptr : &*found;
}

bool Node::Has(std::string_view key) const {
  return std::ranges::count(children_, key, &Node::key_) > 0;
}

Node* Node::Take(std::string_view key) {
  asked_.emplace_back(key);
  Node* const child = Child(key);
  if (child != nullptr) child->taken_ = true;
  return child;
}

Node& Node::Need(std::string_view key) {
  Node* const child = Take(key);
  if (child != nullptr) return *child;
  for (const Node& other : children_) {  // rather than missing it is mistyped
    if (other.taken_ || !IsLikelyTypo(EditDistance(other.key_, key), key.size())) continue;
    throw other.About(other.key_, fmt::format("is no key here; did you mean {}?", key));
  }
  throw About(key, "is missing");
}

Error Node::About(std::string_view key, std::string_view message) const {
  const auto child = std::ranges::find(children_, key, &Node::key_);
  const std::string& place = child == children_.end() ? place_ : child->place_;
  return Error::Format("{}: {}{}", place, key.empty() ? "" : fmt::format("{}: ", key), message);
}

std::string Node::Text(std::string_view key) {
  Node& child = Need(key);
  try {
    return ReadText(child.value_);
  } catch (const Error& error) {
    throw child.About(key, error.what());
  }
}

std::string Node::Text(std::string_view key, std::string otherwise) {
  return Take(key) == nullptr ? std::move(otherwise) : Text(key);
}

bool Node::Flag(std::string_view key, bool otherwise) {
  Node* const child = Take(key);
  if (child == nullptr) return otherwise;
  if (child->value_.kind != Kind::kFlag) throw child->About(key, "expected true or false");
  return child->value_.flag;
}

double Node::Number(std::string_view key, double otherwise) {
  Node* const child = Take(key);
  if (child == nullptr) return otherwise;
  if (child->value_.kind == Kind::kWhole) return static_cast<double>(child->value_.whole);
  if (child->value_.kind != Kind::kReal) throw child->About(key, "expected a number");
  return child->value_.real;
}

int Node::Whole(std::string_view key, int otherwise) {
  Node* const child = Take(key);
  if (child == nullptr) return otherwise;
  const int64_t whole = child->value_.whole;
  if (child->value_.kind != Kind::kWhole || whole < -kMostWhole || whole > kMostWhole) {
    throw child->About(key, "expected a whole number");
  }
  return static_cast<int>(whole);
}

std::vector<std::string> Node::Texts(std::string_view key) {
  Node* const child = Take(key);
  if (child == nullptr) return {};
  try {
    return ReadTexts(child->value_);
  } catch (const Error& error) {
    throw child->About(key, error.what());
  }
}

std::string Node::OptionText() const {
  switch (value_.kind) {
    case Kind::kText:
      return value_.text;
    case Kind::kWhole:
      return fmt::format("{}", value_.whole);
    case Kind::kFlag:
      return value_.flag ? "true" : "false";
    default:
      throw About(key_, "expected a text, a whole number or a flag; write other numbers in quotes");
  }
}

std::string Node::ValueText() const { return TomlOf(value_); }

std::pair<std::vector<double>, bool> Node::Numbers(std::string_view key) {
  Node& child = Need(key);
  if (child.value_.kind != Kind::kArray) throw child.About(key, "expected an array of numbers");
  std::vector<double> numbers;
  bool whole = true;
  for (const ConfigValue& element : child.value_.elements) {
    if (element.kind != Kind::kWhole && element.kind != Kind::kReal) {
      throw child.About(key, "expected an array of numbers");
    }
    const bool is_whole = element.kind == Kind::kWhole;
    numbers.push_back(is_whole ? static_cast<double>(element.whole) : element.real);
    whole = whole && is_whole;
  }
  return {numbers, whole};
}

std::vector<Node> Node::Entries(std::string_view key) {
  Node* const child = Take(key);
  if (child == nullptr) return {};
  const bool none = child->value_.kind == Kind::kArray && child->value_.whole == 0;
  if (!child->IsTable() && !none) throw child->About(key, "expected tables");
  return child->children_;
}

std::vector<Node> Node::Tables(std::string_view key) {
  std::vector<Node> tables = Entries(key);
  for (const Node& table : tables) {
    if (!table.IsTable()) throw table.About(table.key_, "expected a table");
  }
  return tables;
}

Node Node::Table(std::string_view key) {
  Node* const child = Take(key);
  Node none;
  none.place_ = place_;
  if (child == nullptr) return none;
  if (child->value_.kind != Kind::kTable) throw child->About(key, "expected a table");
  return *child;
}

void Node::AddValues(const std::string& prefix, std::vector<Node>& values) {
  for (Node& child : children_) {
    child.taken_ = true;
    const std::string key = prefix.empty() ? child.key_ : prefix + "." + child.key_;
    if (child.value_.kind == Kind::kTable) {
      child.AddValues(key, values);
    } else {
      Node value = child;
      value.key_ = key;
      values.push_back(std::move(value));
    }
  }
}

std::vector<Node> Node::Values() {
  std::vector<Node> values;
  AddValues("", values);
  return values;
}

void Node::AddMissing(const Node& other, std::string_view merged) {
  for (const Node& given : other.children_) {
    Node* const own = Child(given.key_);
    if (own == nullptr) {
      children_.push_back(given);
    } else if (given.key_ == merged) {
      own->AddMissing(given);
    }
  }
}

void Node::Replace(const std::map<std::string, std::string>& words) {
  value_.text = Replaced(std::move(value_.text), words);
  for (ConfigValue& element : value_.elements)
    element.text = Replaced(std::move(element.text), words);
  for (Node& child : children_) child.Replace(words);
}

void Node::CheckTaken() const {
  for (const Node& child : children_) {
    if (child.taken_) continue;
    const std::string list = fmt::format("{}", fmt::join(asked_, ", "));
    throw child.About(child.key_, "is no key here" + DidYouMean(child.key_, list));
  }
}

}  // namespace numsim::experiments::study
