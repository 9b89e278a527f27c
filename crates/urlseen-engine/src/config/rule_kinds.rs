//! Kinds of rules: the keys of their tables, and the functions that read them.

use super::expire::ExpireRule;
use super::layers::Layers;
use super::limit;
use super::named::NamedRule;
use super::rules::Table;
use urlseen_core::fingerprint::pages::Pages;
use urlseen_core::fingerprint::same::{SameRule, SameRules};

/// Maximum number of rules of a kind in a configuration.
pub(super) const MOST: usize = 100;

/// Kind of rules, each with a table in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct RuleKind {
    /// Name of the kind's tables in the file.
    pub(super) name: &'static str,
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
    pub(super) form: ValueForm,
}

/// Type of the values of a rule's key.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueForm {
    /// A regular expression for a part of a URL.
    Pattern,
    /// A text in quotes, of any length.
    Text,
    /// A whole number in the range of `max`.
    Number,
    /// A list of texts in quotes.
    List,
}

/// Name of a rule in metrics and status.
const NAME: RuleKey = RuleKey { name: "name", form: ValueForm::Text };

/// All kinds of rules that a file may have.
pub(super) const KINDS: [RuleKind; 5] = [
    RuleKind {
        name: "same",
        keys: &[
            RuleKey { name: "drop_params", form: ValueForm::List },
            RuleKey { name: "keep_params", form: ValueForm::List },
            RuleKey { name: "fold", form: ValueForm::List },
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
        keys: &[NAME],
        for_all: false,
        add: |layers, table, pages| NamedRule::add(&mut layers.rules.pass, table, pages),
    },
    RuleKind {
        name: "drop",
        keys: &[NAME],
        for_all: false,
        add: |layers, table, pages| NamedRule::add(&mut layers.rules.drop, table, pages),
    },
    RuleKind {
        name: "limit",
        keys: &[
            NAME,
            RuleKey { name: "by", form: ValueForm::Text },
            RuleKey { name: "parameter", form: ValueForm::Text },
            RuleKey { name: "max", form: ValueForm::Number },
        ],
        for_all: true,
        add: |layers, table, pages| limit::add(&mut layers.rules.limit, table, pages),
    },
    RuleKind {
        name: "expire",
        keys: &[RuleKey { name: "expire_after", form: ValueForm::Text }],
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
        let pages = Pages::KEYS.into_iter().map(|name| RuleKey { name, form: ValueForm::Pattern });
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
            Self::List => "an array of texts in quotes",
            Self::Pattern | Self::Text => "a text in quotes",
        }
    }
}
