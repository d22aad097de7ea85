use super::*;

#[test]
fn a_bound_is_kept_or_not() {
    let met = |value, bound| Aim::new("an aim", value, bound).met;
    assert_eq!(met(Some(0.8), Bound::AtLeast(0.8)), Some(true));
    assert_eq!(met(Some(0.799), Bound::AtLeast(0.8)), Some(false));
    assert_eq!(met(Some(1.0), Bound::Above(1.0)), Some(false));
    assert_eq!(met(Some(1.001), Bound::Above(1.0)), Some(true));
    assert_eq!(met(Some(0.05), Bound::AtMost(0.05)), Some(true));
    assert_eq!(met(Some(0.051), Bound::AtMost(0.05)), Some(false));
}

#[test]
fn what_was_not_measured_is_neither_met_nor_not() {
    let aim = Aim::new("an aim", None, Bound::AtLeast(0.9));
    assert_eq!((aim.value, aim.met), (None, None));
    // Nothing was stored, so nothing can be divided by it.
    let aim = Aim::new("an aim", Some(1.0 / 0.0), Bound::AtLeast(0.9));
    assert_eq!((aim.value, aim.met), (None, None));
    assert_eq!(aim.wanted, ">= 0.9");
}

#[test]
fn what_was_measured_is_compared_before_it_is_rounded() {
    let aim = Aim::new("an aim", Some(0.799_96), Bound::AtLeast(0.8));
    assert_eq!((aim.value, aim.met), (Some(0.8), Some(false)));
}
