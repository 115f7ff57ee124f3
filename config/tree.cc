// SPDX-License-Identifier: Apache-2.0
#include "config/tree.h"

#include <algorithm>
#include <exception>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "config/text_check.h"

namespace pushrod::config {

namespace {

/// Ends the scanner's work from inside an event; caught in parseTree.
struct Refusal final : std::exception {
  Refusal(Position position, std::string reason) : where(position), text(std::move(reason)) {}

  Position where;
  std::string text;
};

/// Put behind the text: the scanner takes an open quote whose last line has ended for a closed one,
/// and refuses it when the text ends within a line.
constexpr const char* kEndMark = "\n# end";

Position positionOf(const YAML::Mark& mark) {
  return mark.is_null() ? Position{} : Position{mark.line + 1, mark.column + 1};
}

/// Builds the tree from the scanner's events, refusing what could make it grow beyond its text or
/// mean something else than it says.
class TreeBuilder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) {
      throw Refusal(positionOf(mark),
                    "text after the end of the document; a file holds one document");
    }
  }

  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    place({.kind = TreeNode::Kind::kNull, .where = positionOf(mark)});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw Refusal(positionOf(mark), "aliases (*name) are not supported; write the value out");
  }

  void OnScalar(const YAML::Mark& mark,
                const std::string& tag,
                YAML::anchor_t /*anchor*/,
                const std::string& value) override {
    // The scanner gives "!" to quoted and block scalars and "?" to plain ones.
    if (tag != "!") {
      checkTag(mark, tag);
    }
    place({.kind = TreeNode::Kind::kScalar,
           .where = positionOf(mark),
           .text = value,
           .quoted = tag == "!"});
  }

  void OnSequenceStart(const YAML::Mark& mark,
                       const std::string& tag,
                       YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {
    open(TreeNode::Kind::kSequence, mark, tag);
  }

  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark,
                  const std::string& tag,
                  YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    open(TreeNode::Kind::kMap, mark, tag);
  }

  void OnMapEnd() override { close(); }

  [[nodiscard]] TreeNode take() { return std::move(root_); }

 private:
  struct Level {
    TreeNode node;
    std::optional<TreeNode> key;  ///< kMap: read, its value is still to come
  };

  static void checkTag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?") {
      throw Refusal(positionOf(mark), "tags (" + quoted(tag) + ") are not supported; remove it");
    }
  }

  void open(TreeNode::Kind kind, const YAML::Mark& mark, const std::string& tag) {
    checkTag(mark, tag);
    if (levels_.size() >= kMaxDepth) {
      throw Refusal(positionOf(mark),
                    "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    levels_.push_back({.node = {.kind = kind, .where = positionOf(mark)}, .key = {}});
  }

  void close() {
    TreeNode done = std::move(levels_.back().node);
    levels_.pop_back();
    place(std::move(done));
  }

  void place(TreeNode node) {
    if (levels_.empty()) {
      root_ = std::move(node);
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == TreeNode::Kind::kSequence) {
      level.node.items.push_back(std::move(node));
    } else if (level.key) {
      level.node.entries.emplace_back(std::move(*level.key), std::move(node));
      level.key.reset();
    } else {
      level.key = std::move(node);
    }
  }

  std::vector<Level> levels_;
  TreeNode root_;
  int documents_ = 0;
};

}  // namespace

std::optional<TreeNode> parseTree(const std::string& text, FaultList& faults) {
  if (text.size() > kMaxTextBytes) {
    faults.add({},
               "the file has " + std::to_string(text.size()) + " bytes, more than the " +
                   std::to_string(kMaxTextBytes) + " that a configuration may have");
    return std::nullopt;
  }
  if (auto fault = checkText(text)) {
    faults.add(fault->where, std::move(fault->text));
    return std::nullopt;
  }
  try {
    std::istringstream stream(text + kEndMark);
    YAML::Parser parser(stream);
    TreeBuilder builder;
    // The second call only looks for a second document: its first event ends it. (The library's own
    // reader of all documents does not return on some texts.)
    if (parser.HandleNextDocument(builder)) {
      parser.HandleNextDocument(builder);
    }
    return builder.take();
  } catch (const Refusal& refusal) {
    faults.add(refusal.where, refusal.text);
  } catch (const YAML::Exception& error) {
    const auto lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
    const Position where = positionOf(error.mark);
    faults.add(where.line > lines ? Position{lines, 1} : where, "not valid YAML: " + error.msg);
  } catch (const std::exception& error) {
    faults.add({}, std::string("not readable as YAML: ") + error.what());
  }
  return std::nullopt;
}

}  // namespace pushrod::config
