//! Settings that are one of a few words.

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// The word of the setting.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub(crate) fn of(text: Option<&str>, default: Self) -> Self {
                match text { $(Some($word) => Self::$variant,)+ _ => default }
            }
        }
    };
}

words! {
    /// What the node is in a cluster.
    Role {
        /// Store, Admin API and proxy in one process.
        Traditional = "traditional",
        /// Store, Admin API and cluster listener.
        ControlPlane = "control_plane",
        /// Proxy, configured by a control plane.
        DataPlane = "data_plane",
    }
}

words! {
    /// Where entities are kept.
    Database {
        /// The embedded store.
        Lmdb = "lmdb",
        /// Nowhere: a declarative file, or a control plane.
        Off = "off",
        /// PostgreSQL; refused for now.
        Postgres = "postgres",
    }
}

words! {
    /// How peers of a cluster know each other.
    Mtls {
        /// All carry the same certificate.
        Shared = "shared",
        /// An authority issues a certificate to each.
        Pki = "pki",
    }
}

words! {
    /// Who may use the Admin API.
    AdminAuth {
        /// Whoever reaches it.
        Off = "off",
        /// Bearers of a token.
        Token = "token",
    }
}

words! {
    /// Whether revocation of data planes' certificates is checked.
    Ocsp {
        /// Checked; a data plane without an answer is refused.
        On = "on",
        /// Not checked.
        Off = "off",
        /// Checked; a data plane without an answer is let in.
        Optional = "optional",
    }
}

words! {
    /// Language of routes.
    Flavor {
        /// Match fields; Kong 3.x matching.
        TraditionalCompatible = "traditional_compatible",
        /// Match fields; Kong 2.x matching.
        Traditional = "traditional",
        /// Expressions.
        Expressions = "expressions",
    }
}

words! {
    /// Least severe level that is logged, by nginx's names.
    LogLevel {
        /// Everything.
        Debug = "debug",
        /// Progress.
        Info = "info",
        /// What an administrator may want to know.
        Notice = "notice",
        /// What may become a fault.
        Warn = "warn",
        /// Faults.
        Error = "error",
        /// Faults of a part.
        Critical = "crit",
        /// Faults that need a hand.
        Alert = "alert",
        /// The node is unusable.
        Emergency = "emerg",
    }
}
