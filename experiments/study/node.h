// A table of a TOML file whose keys are taken one by one, so that none is left unread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/config/config_value.h"

namespace numsim::experiments::study {

// A table, or a value with its key. All functions that take a key throw Error "FILE:LINE: ..." for a value
// of another type.
class Node {
 public:
  // Returns the table of a document. Throws Error "NAME:LINE: ..." if it is not valid TOML.
  static Node Read(std::string_view document, std::string_view name);

  const std::string& key() const { return key_; }
  bool Has(std::string_view key) const;

  // Return the value of a key, or throw Error if there is none.
  std::string Text(std::string_view key);
  // Return the value of a key, or `otherwise` if there is none.
  std::string Text(std::string_view key, std::string otherwise);
  bool Flag(std::string_view key, bool otherwise);
  double Number(std::string_view key, double otherwise);
  int Whole(std::string_view key, int otherwise);
  std::vector<std::string> Texts(std::string_view key);
  // Returns a value as the text of an option: a text, a whole number or a flag. A real number is refused,
  // because its text is not known.
  std::string OptionText() const;
  // Returns a value as TOML, the same for all ways to write it. A table has none.
  std::string ValueText() const;
  // Returns an array of numbers, and whether all were written as whole ones.
  std::pair<std::vector<double>, bool> Numbers(std::string_view key);

  // Returns the tables of an array, or of a table of tables, in the order of the file; none if there is no
  // such key.
  std::vector<Node> Tables(std::string_view key);
  // Returns what stands below a key, tables and values, in the order of the file; nothing if there is no
  // such key.
  std::vector<Node> Entries(std::string_view key);
  bool IsTable() const { return value_.kind == ConfigValue::Kind::kTable; }
  // Returns the table of a key; an empty one if there is none.
  Node Table(std::string_view key);
  // Returns the values below this table by their keys, "model.layers", and takes all of them.
  std::vector<Node> Values();

  // Adds the keys of another table that this one does not have, and to the tables under `merged` those that
  // they do not have.
  void AddMissing(const Node& other, std::string_view merged = "");
  // Replaces {NAME} in every text below by words.at(NAME). Other braces stay.
  void Replace(const std::map<std::string, std::string>& words);
  // Throws Error for the first key that was not taken, with the nearest key that was asked for.
  void CheckTaken() const;
  // Returns Error "FILE:LINE: KEY: message", with the line of the key if the table has it, or its own.
  Error About(std::string_view key, std::string_view message) const;

 private:
  Node* Child(std::string_view key);
  // Returns the child, which is taken with all that is below it; nullptr if there is none.
  Node* Take(std::string_view key);
  Node& Need(std::string_view key);
  void AddValues(const std::string& prefix, std::vector<Node>& values);

  std::string key_;
  std::string place_;
  ConfigValue value_;
  std::vector<Node> children_;
  bool taken_ = false;
  std::vector<std::string> asked_;
};

}  // namespace numsim::experiments::study
