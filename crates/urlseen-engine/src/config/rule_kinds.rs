//! Kinds of rules: the keys of their tables, and the functions that read them.

use serde_json::{Value as Json, json};

use super::expire::ExpireRule;
use super::layers::Layers;
use super::limit;
use super::named::{LONGEST_NAME, NamedRule};
use super::rules::Table;
use urlseen_core::fingerprint::pages::Pages;
use urlseen_core::fingerprint::same::{Fold, SameRule, SameRules};
use urlseen_core::limit::By;

/// Maximum number of rules of a kind in a configuration.
pub(super) const MOST: usize = 100;

/// Kind of rules, each with a table in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKind {
    /// Name of the kind's tables in the file.
    pub(super) name: &'static str,
    /// Description of the kind.
    pub(super) text: &'static str,
    /// Keys that a rule may have besides those of [`Pages`].
    keys: &'static [RuleKey],
    /// True if a rule without patterns is for all pages.
    pub(super) for_all: bool,
    /// Adds a rule to the layers. The error is the reason why the rule is refused.
    pub(super) add: fn(&mut Layers, &Table, Pages) -> Result<(), String>,
}

/// Key that a table of rules may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKey {
    pub(super) name: &'static str,
    /// Description of the key.
    pub(super) text: &'static str,
    pub(super) form: ValueForm,
}

/// Type of the values of a rule's key.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueForm {
    /// A regular expression for a part of a URL.
    Pattern,
    /// A text of at most this number of bytes.
    Text(usize),
    /// One of the words in this list.
    Word(&'static [&'static str]),
    /// A whole number in the range of `max`.
    Number,
    /// A list of texts in quotes.
    List,
    /// A list with names of folds.
    Folds,
}

/// Name of a rule in metrics and status.
const NAME: RuleKey = RuleKey {
    name: "name",
    text: "Name of the rule in metrics and status. Default: its patterns",
    form: ValueForm::Text(LONGEST_NAME),
};

/// All kinds of rules that a file may have.
pub(super) const KINDS: [RuleKind; 5] = [
    RuleKind {
        name: "same",
        text: "Rule by which different URLs are the same",
        keys: &[
            RuleKey {
                name: "drop_params",
                text: "Parameters of the query that do not count, such as sid or ref_*",
                form: ValueForm::List,
            },
            RuleKey {
                name: "keep_params",
                text: "The only parameters of the query that count",
                form: ValueForm::List,
            },
            RuleKey {
                name: "fold",
                text: "Differences between URLs that do not count",
                form: ValueForm::Folds,
            },
        ],
        for_all: true,
        add: |layers, table, pages| {
            let [drop_params, keep_params] =
                ["drop_params", "keep_params"].map(|it| table.list(it));
            let rule = SameRule::new(pages, drop_params, keep_params, &table.list("fold"))?;
            layers.rules.same.push(rule);
            let is_allowed = SameRules::check(&layers.rules.same);
            if is_allowed.is_err() {
                layers.rules.same.pop();
            }
            is_allowed.map_err(|error| error.to_string())
        },
    },
    RuleKind {
        name: "pass",
        text: "Rule for pages that always pass",
        keys: &[NAME],
        for_all: false,
        add: |layers, table, pages| NamedRule::add(&mut layers.rules.pass, table, pages),
    },
    RuleKind {
        name: "drop",
        text: "Rule for pages that never pass",
        keys: &[NAME],
        for_all: false,
        add: |layers, table, pages| NamedRule::add(&mut layers.rules.drop, table, pages),
    },
    RuleKind {
        name: "limit",
        text: "Rule that limits the number of unseen items of each group",
        keys: &[
            NAME,
            RuleKey {
                name: "by",
                text: "What the items of a group have in common",
                form: ValueForm::Word(&By::NAMES),
            },
            RuleKey {
                name: "parameter",
                text: "Parameter whose different values count, with by = \"parameter\"",
                form: ValueForm::Text(usize::MAX),
            },
            RuleKey {
                name: "max",
                text: "Maximum number of unseen items of a group, or of values of the parameter",
                form: ValueForm::Number,
            },
        ],
        for_all: true,
        add: |layers, table, pages| limit::add(&mut layers.rules.limit, table, pages),
    },
    RuleKind {
        name: "expire",
        text: "Rule for pages whose URLs pass again earlier than others, or never",
        keys: &[RuleKey {
            name: "expire_after",
            text: "Time after which the URLs pass again, such as 6d, or never",
            form: ValueForm::Text(usize::MAX),
        }],
        for_all: false,
        add: |layers, table, pages| {
            layers.rules.expire.push(ExpireRule::read(table, pages)?);
            Ok(())
        },
    },
];

impl RuleKind {
    /// Iterates over all keys that a rule may have.
    pub(super) fn all_keys(self) -> impl Iterator<Item = RuleKey> + Clone {
        let pages = Pages::KEYS.into_iter().map(|name| RuleKey {
            name,
            text: "Regular expression that must match this part of the URL",
            form: ValueForm::Pattern,
        });
        self.keys.iter().copied().chain(pages)
    }

    /// Iterates over the names of all keys that a rule may have.
    pub(super) fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        self.all_keys().map(|key| key.name)
    }
}

impl ValueForm {
    /// Describes the form, for the end of a message.
    pub(super) fn allowed(self) -> &'static str {
        match self {
            Self::Number => "a whole number",
            Self::List | Self::Folds => "an array of texts in quotes",
            Self::Pattern | Self::Text(_) | Self::Word(_) => "a text in quotes",
        }
    }

    /// Returns the JSON schema of the values.
    pub(super) fn schema(self) -> Json {
        match self {
            Self::Pattern => json!({ "type": "string" }),
            Self::Text(usize::MAX) => json!({ "type": "string", "minLength": 1 }),
            Self::Text(most) => json!({ "type": "string", "minLength": 1, "maxLength": most }),
            Self::Word(words) => json!({ "enum": words }),
            Self::Number => {
                let (least, most) = (limit::MAX.start(), limit::MAX.end());
                json!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Self::List => json!({ "type": "array", "items": { "type": "string" } }),
            Self::Folds => {
                let names = Fold::ALL.map(Fold::name);
                json!({ "type": "array", "items": { "enum": names } })
            }
        }
    }
}
