//! Finds arithmetic in HCL that has no result, because the evaluator would panic on it.

use hcl::edit::expr::{BinaryOp, BinaryOperator, Expression};
use hcl::edit::visit::{Visit, visit_binary_op};
use hcl::eval::{Context, Evaluate};

/// The largest number in arithmetic.
const RESULT_MAX: f64 = 9e18;

/// The problem of the first operation in `expression` that has no result.
pub(crate) fn problem(expression: &Expression) -> Option<String> {
    let mut checker = Checker { problem: None };
    checker.visit_expr(expression);
    checker.problem
}

struct Checker {
    problem: Option<String>,
}

impl Visit for Checker {
    fn visit_binary_op(&mut self, operation: &BinaryOp) {
        // Check the operands first, because this operation needs their values.
        visit_binary_op(self, operation);
        if self.problem.is_none() {
            self.problem = check(operation);
        }
    }
}

fn check(operation: &BinaryOp) -> Option<String> {
    use BinaryOperator::{Div, Minus, Mod, Mul, Plus};
    let operator = *operation.operator.value();
    if !matches!(operator, Plus | Minus | Mul | Div | Mod) {
        return None;
    }
    let number = |operand: &Expression| match hcl::Expression::from(operand.clone()).evaluate(&Context::new())
    {
        Ok(hcl::Value::Number(number)) => number.as_f64(),
        _ => None,
    };
    let sign = operator.as_str();
    let (Some(left), Some(right)) = (number(&operation.lhs_expr), number(&operation.rhs_expr)) else {
        return Some(format!("{sign} needs a number on each side"));
    };
    if right == 0.0 && matches!(operator, Div | Mod) {
        return Some(format!("{left} {sign} {right} has no result"));
    }
    let result = match operator {
        Plus => left + right,
        Minus => left - right,
        Mul => left * right,
        Div => left / right,
        _ => left % right,
    };
    let is_too_large =
        [left, right, result].iter().any(|number| number.is_nan() || number.abs() > RESULT_MAX);
    is_too_large.then(|| format!("{left} {sign} {right} is too large a number"))
}
