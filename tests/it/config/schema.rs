//! JSON schema of the configuration, with a validator.

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::Value;

use crate::util::binary::urlseen;
use crate::util::sources::{pages, root};

/// JSON schema that is ready to validate.
struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    /// Compiles the schema that the program prints.
    fn printed() -> Self {
        let output = urlseen(["config", "schema"]).output();
        assert_eq!(output.code(), Some(0), "{output:?}");
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        let schema: Value = serde_json::from_str(output.text()).unwrap();
        compiler.add_resource("urlseen.schema.json", schema).unwrap();
        let index = compiler.compile("urlseen.schema.json", &mut schemas).unwrap();
        Self { schemas, index }
    }

    /// Validates a configuration. Returns the problems.
    fn validate(&self, toml: &str) -> Result<(), String> {
        let value: toml::Value = toml::from_str(toml).map_err(|error| error.to_string())?;
        let value = serde_json::to_value(value).unwrap();
        self.schemas.validate(&value, self.index).map_err(|error| format!("{error:#}"))
    }
}

#[test]
fn the_schema_accepts_every_documented_configuration() {
    let schema = Schema::printed();
    let documented = std::fs::read_to_string(root().join("config.toml")).unwrap();
    schema.validate(&documented).unwrap();
    let mut blocks = 0;
    for page in pages() {
        for block in page.text.split("\n```toml\n").skip(1) {
            let block = block.split("\n```").next().unwrap();
            // A page about the library has a Cargo.toml.
            if !block.contains("[dependencies]") {
                schema.validate(block).unwrap_or_else(|error| panic!("{}: {error}", page.path));
                blocks += 1;
            }
        }
    }
    assert!(blocks >= 10, "only {blocks} blocks found");
}

#[test]
fn the_schema_accepts_everything_that_show_prints() {
    let shown = urlseen(["config", "show", "--toml"]).output();
    Schema::printed().validate(shown.text()).unwrap();
}

#[test]
fn the_schema_refuses_wrong_configurations() {
    let schema = Schema::printed();
    for (wrong, place) in [
        ("[filter]\ncapasity = 1", "capasity"),
        ("[fliter]\ncapacity = 1", "fliter"),
        ("[filter]\ncapacity = 0", "/filter/capacity"),
        ("[filter]\ncapacity = '1e9'", "/filter/capacity"),
        ("[filter]\nerror_rate = 0.5", "/filter/error_rate"),
        ("[filter]\nkind = 'bloom'", "/filter/kind"),
        ("[filter]\nseed = '7'", "/filter/seed"),
        ("[partitions]\ncount = 3", "/partitions/count"),
        ("[held]\ntimeout = '60'", "/held/timeout"),
        ("[serve]\nkeys = []", "/serve/keys"),
        ("[serve]\nallow_delete = 'yes'", "/serve/allow_delete"),
        ("[crawl]\nname = ''", "/crawl/name"),
        ("[same]\nfold = ['www']", "/same"),
        ("[[same]]\nfold = ['wwww']", "/same/0/fold/0"),
        ("[[limit]]\nby = 'hosts'\nmax = 1", "/limit/0/by"),
        ("[[limit]]\nby = 'host'\nmax = 0", "/limit/0/max"),
        ("[[drop]]\nurl = 'x'", "/drop/0"),
    ] {
        let error = schema.validate(wrong).expect_err(wrong);
        assert!(error.contains(place), "{wrong}: {error}");
    }
}
