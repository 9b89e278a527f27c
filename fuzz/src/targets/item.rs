//! Items in all forms. The input is a byte for the form, a byte of options and an item.

use std::sync::LazyLock;

use urlseen_cli::config::{Config, Emit, ItemForm, Rules, Sources};
use urlseen_engine::item::{Form, Item, ItemSummary, Options, Reader, Unreadable};
use urlseen_fingerprint::Algorithm;

/// Rules for some items. They live as long as the process.
static RULES: LazyLock<Config> = LazyLock::new(|| {
    let rules = "[[drop]]\nextension = '^zip$'\n[[pass]]\nhost = '^h$'\npath = '^/list'\n\
                 [[same]]\nfold = ['www']";
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(&file, rules).expect("a file can be written");
    let sources = Sources { file: Some(file.path().to_owned()), ..Sources::default() };
    Config::load(sources).expect("the rules are valid")
});

const FORMS: [ItemForm; 6] = [
    ItemForm::Auto,
    ItemForm::Url,
    ItemForm::Json,
    ItemForm::Fingerprint,
    ItemForm::Tab,
    ItemForm::Pickle,
];

pub fn check(input: &[u8]) {
    let [form, choice, item @ ..] = input else { return };
    let _ = ItemSummary::of(item);
    let form = FORMS[usize::from(*form) % FORMS.len()];
    let options = options(form, *choice);
    let mut fresh = Reader::new(options.clone());
    let read = outcome(fresh.read(item));
    let mut used = Reader::new(options.clone());
    let _ = used.read(&item[item.len() / 2..]);
    let _ = used.read(&[item, item].concat());
    assert_eq!(outcome(used.read(item)), read, "after other items");
    if form == ItemForm::Auto
        && !item.is_empty()
        // Only a form that the user names may have any text as fingerprint.
        && !matches!(fresh.read(item), Err(Unreadable::Fingerprint))
        && let Some(detected) = options.form.of(item)
    {
        let mut detected = Reader::new(Options { form: detected.into(), ..options.clone() });
        assert_eq!(outcome(detected.read(item)), read, "in the detected form");
    }
    if options.emit == Emit::StartUrl
        && let Ok(Item { emitted: Some(emitted), .. }) = fresh.read(item)
    {
        check_start_url(&emitted, options);
    }
}

/// Checks that a start URL is JSON, and stays the same if it is read and emitted again.
fn check_start_url(start_url: &[u8], options: Options) {
    let json = serde_json::from_slice::<serde_json::Value>(start_url);
    assert!(json.expect("a start URL is JSON")["url"].is_string());
    let mut reader = Reader::new(Options { form: Form::Item(ItemForm::Json), ..options });
    // The fingerprint of an item permits any URL, and is not part of the start URL.
    if let Ok(Item { emitted: Some(again), .. }) = reader.read(start_url) {
        assert_eq!(String::from_utf8_lossy(&again), String::from_utf8_lossy(start_url));
    }
}

fn options(form: ItemForm, choice: u8) -> Options {
    let emit = [Emit::Item, Emit::Url, Emit::StartUrl][usize::from(choice >> 4) % 3];
    let plain = Options {
        emit,
        scored: choice & 1 != 0,
        ..Options::new(form.into(), Algorithm::all()[usize::from(choice >> 2) % 3])
    };
    if choice & 2 == 0 {
        return plain;
    }
    let Rules { drop, pass, .. } = RULES.rules.clone();
    Options { drop, pass, fingerprint: RULES.fingerprint_spec(), ..plain }
}

/// Returns all that a reader says about an item.
fn outcome(read: Result<Item<'_>, impl ToString>) -> Result<String, String> {
    read.map(|item| format!("{item:?}")).map_err(|error| error.to_string())
}
