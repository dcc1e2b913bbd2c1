//! Making certificates.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
};

use crate::client::SHARED_NAME;
use crate::{CertError, Source};

/// Days a cluster certificate is valid unless told otherwise: three years, as with Kong.
pub const CLUSTER_DAYS: u32 = 1095;

/// Clocks of peers differ, so a certificate is valid a little before it is made.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// A certificate and its private key in PEM (PKCS#8).
#[derive(Clone)]
pub struct PemPair {
    /// The certificate; safe to show.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

impl std::fmt::Debug for PemPair {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.certificate)
    }
}

/// Makes the pair that all nodes of a cluster share.
///
/// EC key on P-384, name `kong_clustering` as common name and SAN, self-signed, for both ends of a connection. Unlike
/// the pair of Kong's generator it is X.509 v3, which every version of Kong accepts. `now` is in seconds since 1970.
///
/// # Errors
/// [`CertError::BugRefused`] only.
pub fn cluster_pair(now: u64, days: u32) -> Result<PemPair, CertError> {
    let mut wanted = leaf(SHARED_NAME, &[SHARED_NAME.into()], now, days)?;
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key =
        KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).map_err(|error| CertError::refused("make a key")(&error))?;
    self_sign(&wanted, &key)
}

/// Makes the certificate of a listener for which none is set.
///
/// Valid for 20 years like Kong's own; clients cannot verify it. Names are DNS names or addresses.
///
/// # Errors
/// [`CertError::InputName`] for a name that is neither.
pub fn self_signed(names: &[String], now: u64) -> Result<PemPair, CertError> {
    let mut wanted = leaf(names.first().map_or("localhost", String::as_str), names, now, 20 * 365)?;
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key =
        KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|error| CertError::refused("make a key")(&error))?;
    self_sign(&wanted, &key)
}

/// An authority that issues the certificates of a cluster in `pki` mode.
#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new authority; the pair is what [`Authority::read`] reads later.
    ///
    /// # Errors
    /// [`CertError::BugRefused`] only.
    pub fn create(name: &str, now: u64, days: u32) -> Result<(Self, PemPair), CertError> {
        let mut wanted = leaf(name, &[], now, days)?;
        wanted.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        wanted.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key =
            KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).map_err(|error| CertError::refused("make a key")(&error))?;
        let pair = self_sign(&wanted, &key)?;
        Ok((Self { certificate: pair.certificate.clone(), issuer: Issuer::new(wanted, key) }, pair))
    }

    /// Takes up an authority that was made before.
    ///
    /// # Errors
    /// Either text is broken, or they are not a pair.
    pub fn read(certificate: Source<'_>, key: Source<'_>) -> Result<Self, CertError> {
        crate::Identity::read(certificate, key)?;
        let unreadable = |source: Source<'_>, error: rcgen::Error| CertError::ConfigUnreadable {
            setting: source.setting.into(),
            place: source.place.into(),
            why: error.to_string(),
        };
        let pair = KeyPair::from_pem(key.pem).map_err(|error| unreadable(key, error))?;
        let issuer = Issuer::from_ca_cert_pem(certificate.pem, pair).map_err(|error| unreadable(certificate, error))?;
        Ok(Self { certificate: certificate.pem.into(), issuer })
    }

    /// The authority's certificate in PEM, the value of `cluster_ca_cert`.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Issues the certificate of a control plane; `names` are those data planes reach it by.
    ///
    /// # Errors
    /// [`CertError::InputName`] for a name that is neither a host name nor an address.
    pub fn issue_control_plane(&self, names: &[String], now: u64, days: u32) -> Result<PemPair, CertError> {
        let common_name = names.first().map_or("control_plane", String::as_str);
        self.issue(common_name, names, ExtendedKeyUsagePurpose::ServerAuth, now, days)
    }

    /// Issues the certificate of a data plane.
    ///
    /// # Errors
    /// [`CertError::InputName`] for a name that no certificate can carry.
    pub fn issue_data_plane(&self, name: &str, now: u64, days: u32) -> Result<PemPair, CertError> {
        self.issue(name, &[name.into()], ExtendedKeyUsagePurpose::ClientAuth, now, days)
    }

    fn issue(
        &self,
        common_name: &str,
        names: &[String],
        usage: ExtendedKeyUsagePurpose,
        now: u64,
        days: u32,
    ) -> Result<PemPair, CertError> {
        let mut wanted = leaf(common_name, names, now, days)?;
        wanted.extended_key_usages = vec![usage];
        wanted.use_authority_key_identifier_extension = true;
        let key =
            KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).map_err(|error| CertError::refused("make a key")(&error))?;
        let signed =
            wanted.signed_by(&key, &self.issuer).map_err(|error| CertError::refused("sign a certificate")(&error))?;
        Ok(PemPair { certificate: signed.pem(), key: key.serialize_pem() })
    }
}

fn leaf(common_name: &str, names: &[String], now: u64, days: u32) -> Result<CertificateParams, CertError> {
    let bad_name = |name: &str| CertError::InputName { name: name.into() };
    if let Some(name) = names.iter().find(|name| rustls_pki_types::ServerName::try_from(name.as_str()).is_err()) {
        return Err(bad_name(name));
    }
    let mut wanted = CertificateParams::new(names).map_err(|_| bad_name(common_name))?;
    wanted.distinguished_name = rcgen::DistinguishedName::new();
    wanted.distinguished_name.push(DnType::CommonName, common_name);
    wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let start = rcgen::date_time_ymd(1970, 1, 1);
    // The year 9999 is the last that a certificate can name.
    let now = now.min(200_000_000_000);
    wanted.not_before = start + Duration::from_secs(now).saturating_sub(CLOCK_SKEW);
    wanted.not_after = start + Duration::from_secs((now + u64::from(days) * 86_400).min(253_402_300_799));
    Ok(wanted)
}

fn self_sign(wanted: &CertificateParams, key: &KeyPair) -> Result<PemPair, CertError> {
    let certificate = wanted.self_signed(key).map_err(|error| CertError::refused("sign a certificate")(&error))?;
    Ok(PemPair { certificate: certificate.pem(), key: key.serialize_pem() })
}
