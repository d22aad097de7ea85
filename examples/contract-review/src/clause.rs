//! The clause types that the panel knows.

use serde::Deserialize;

macro_rules! clauses {
    ($($variant:ident = $name:literal,)*) => {
        /// A clause type. Rule files and findings use the same names for them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
        pub(crate) enum Clause {
            $(#[doc = $name] #[serde(rename = $name)] $variant,)*
        }

        impl Clause {
            /// Every clause type, in the order of findings.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name as it is written in findings.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

clauses! {
    GoverningLaw = "Governing Law",
    AntiAssignment = "Anti-Assignment",
    CapOnLiability = "Cap On Liability",
    UncappedLiability = "Uncapped Liability",
    TerminationForConvenience = "Termination For Convenience",
    Exclusivity = "Exclusivity",
    NonCompete = "Non-Compete",
    AuditRights = "Audit Rights",
    Insurance = "Insurance",
    LicenseGrant = "License Grant",
    ChangeOfControl = "Change Of Control",
    MostFavoredNation = "Most Favored Nation",
    MinimumCommitment = "Minimum Commitment",
    LiquidatedDamages = "Liquidated Damages",
    RevenueSharing = "Revenue/Profit Sharing",
    IpOwnershipAssignment = "Ip Ownership Assignment",
    WarrantyDuration = "Warranty Duration",
    PostTerminationServices = "Post-Termination Services",
    RenewalTerm = "Renewal Term",
    ThirdPartyBeneficiary = "Third Party Beneficiary",
}

impl Clause {
    /// The clause type with this name, in any letter case.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let name = name.trim();
        Self::ALL
            .iter()
            .copied()
            .find(|clause| clause.name().eq_ignore_ascii_case(name))
    }
}
