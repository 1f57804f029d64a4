//! exp, expm1 and ln with + - * /, comparisons and integer operations on f64, in one written order.
//!
//! The platform's own functions differ between systems in the last bit, and min-max would show it.
//! These are polynomials on a reduced argument; the tests hold them within 6e-16 (relative) of the
//! system's functions over the arguments that recency uses: exponents from -750 to 0, and
//! logarithms of decays in (0, 1].

/// ln 2 in two parts: the first has 21 trailing zero bits, so that products with exponents are exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Adding and subtracting it rounds a small f64 to a whole number, ties to even.
const ROUND: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52

/// 1 / 2!, 1 / 3!, ... 1 / 14!: the Taylor coefficients after `1 + x`.
const INVERSE_FACTORIALS: [f64; 13] = [
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5_040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
    1.0 / 87_178_291_200.0,
];

/// e^x for x <= 0; 0 where that underflows. Without branches, so that loops over it become vector code.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    debug_assert!(x <= 0.0);
    let (rest, exponent) = reduce(x);
    scale(1.0 + expm1_near_0(rest), exponent)
}

/// e^x - 1 for x <= 0, to full relative precision near 0.
#[inline(always)]
pub(crate) fn expm1(x: f64) -> f64 {
    let (rest, exponent) = reduce(x);
    let series = expm1_near_0(rest);
    // Beyond -ln(2)/2 the subtraction loses less than one bit. Before it the exponent is 0, the rest x.
    if x > -0.346 {
        series
    } else {
        scale(1.0 + series, exponent) - 1.0
    }
}

/// `rest` and `exponent` with `x = rest + exponent * ln 2`, |rest| < 0.347. The exponent is a whole number
/// and comes as [`ROUND`] plus itself. Below -746, where e^x is less than half the least f64, it is
/// that of -746.
#[inline(always)]
fn reduce(x: f64) -> (f64, f64) {
    let x = if x < -746.0 { -746.0 } else { x };
    let rounded = x * std::f64::consts::LOG2_E + ROUND;
    let exponent = rounded - ROUND;
    let rest = (x - exponent * LN_2_HIGH) - exponent * LN_2_LOW;
    (rest, rounded)
}

/// ln x for 0 < x <= 1.
pub(crate) fn ln(x: f64) -> f64 {
    debug_assert!(x > 0.0 && x <= 1.0);
    // A subnormal number is scaled up first.
    let (x, shift) = if x < f64::MIN_POSITIVE {
        (x * f64::from_bits((1023 + 54) << 52), -54)
    } else {
        (x, 0)
    };
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023 + shift;
    let mut mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 + ...), |s| < 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let square = s * s;
    let mut series = 0.0;
    let mut n = 23.0;
    while n > 1.0 {
        series = (series + 1.0 / n) * square;
        n -= 2.0;
    }
    let near_0 = 2.0 * s + 2.0 * s * series;
    let exponent = exponent as f64;
    exponent * LN_2_HIGH + (near_0 + exponent * LN_2_LOW)
}

/// e^x - 1 for |x| < 0.347, by Taylor's series.
#[inline(always)]
fn expm1_near_0(x: f64) -> f64 {
    let mut series = 0.0;
    for coefficient in INVERSE_FACTORIALS.into_iter().rev() {
        series = series * x + coefficient;
    }
    x + x * x * series
}

/// `x * 2^exponent` for a normal x near 1 and an exponent from -1077 to 0, given as [`ROUND`] plus itself.
/// One rounding: of the two products the first is exact, and so is the second unless it is subnormal.
#[inline(always)]
fn scale(x: f64, exponent: f64) -> f64 {
    let exponent = exponent.to_bits().wrapping_sub(ROUND.to_bits());
    let power = f64::from_bits(exponent.wrapping_add(1023 + 200) << 52);
    x * power * f64::from_bits((1023 - 200) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evenly and log-spaced arguments.
    fn arguments() -> impl Iterator<Item = f64> {
        let even = (0..75_000).map(|i| f64::from(i) * -0.01);
        let log = (0..20_000).map(|i| -(2.0f64.powf(f64::from(i) * 0.002 - 30.0)));
        even.chain(log).filter(|&x| x > -708.0)
    }

    #[test]
    fn exp_and_expm1_agree_with_the_system() {
        for x in arguments() {
            assert!((exp(x) / x.exp() - 1.0).abs() < 4e-16, "exp {x}");
            if x != 0.0 {
                assert!((expm1(x) / x.exp_m1() - 1.0).abs() < 6e-16, "expm1 {x}");
            }
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(expm1(0.0), 0.0);
        assert_eq!(expm1(-f64::MIN_POSITIVE), -f64::MIN_POSITIVE);
    }

    #[test]
    fn exp_underflows_gradually_to_zero() {
        let mut last = exp(-700.0);
        for i in 1..=5_000 {
            let x = -700.0 - f64::from(i) * 0.01;
            let y = exp(x);
            assert!(
                y <= last && (y - x.exp()).abs() <= 2.0 * f64::from_bits(1).max(x.exp() * 1e-15)
            );
            last = y;
        }
        assert_eq!(last, 0.0);
        assert_eq!(exp(f64::NEG_INFINITY), 0.0);
        assert_eq!(expm1(-1e300), -1.0);
    }

    #[test]
    fn ln_agrees_with_the_system() {
        let decays = (1..100_000).map(|i| f64::from(i) / 100_000.0);
        let near_1 = (1..=53).map(|i| 1.0 - 2.0f64.powi(-i));
        let tiny = (0..1074).map(|i| 2.0f64.powi(-i) * 0.9);
        for x in decays.chain(near_1).chain(tiny).filter(|&x| x > 0.0) {
            assert!((ln(x) / x.ln() - 1.0).abs() < 4e-16, "ln {x}");
        }
        assert_eq!(ln(1.0), 0.0);
    }
}
