//! Where in a file the changes are, and what has to be written there for a switch to choose between them.

use std::collections::BTreeMap;
use std::ops::Range;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ExprBinary, Pat};

use crate::change::{Change, Genre, Place};

/// Something to write into a file. Switches are numbers from 1.
#[derive(Debug, PartialEq)]
pub(crate) enum Edit {
    /// The expression in this range, or one of the others, each with its switch.
    Choice { range: Range<usize>, others: Vec<(u32, String)> },
    /// More text at a place, for one switch.
    More { at: usize, switch: u32, text: String },
}

/// What is to be written into a file, and which changes can be in no build at all.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub(crate) edits: Vec<Edit>,
    pub(crate) impossible: Vec<u32>,
}

/// How the changed program asks whether a change is on.
pub(crate) fn question(switch: u32) -> String {
    format!("crate::switches::is({switch})")
}

/// Finds the places of changes in a file's text.
pub(crate) fn find<'a>(
    text: &str,
    changes: impl Iterator<Item = (u32, &'a Change)>,
) -> Result<Sites, syn::Error> {
    let mut wanted: BTreeMap<(Genre, Place), Vec<(u32, &str)>> = BTreeMap::new();
    for (switch, change) in changes {
        wanted.entry((change.genre, change.span.start)).or_default().push((switch, &change.replacement));
    }
    let file = syn::parse_file(text)?;
    let mut search = Search { text, wanted, sites: Sites::default() };
    search.visit_file(&file);
    Ok(search.sites)
}

struct Search<'a> {
    text: &'a str,
    wanted: BTreeMap<(Genre, Place), Vec<(u32, &'a str)>>,
    sites: Sites,
}

impl Search<'_> {
    fn take(&mut self, genre: Genre, span: Span) -> Vec<(u32, String)> {
        let place = Place { line: span.start().line, column: span.start().column + 1 };
        let found = self.wanted.remove(&(genre, place)).unwrap_or_default();
        found.into_iter().map(|(switch, text)| (switch, text.to_owned())).collect()
    }

    /// An expression's text with some of it replaced.
    fn with(&self, whole: &Range<usize>, part: &Range<usize>, text: &str) -> String {
        [&self.text[whole.start..part.start], " ", text, " ", &self.text[part.end..whole.end]].concat()
    }

    /// Others that are no expression are no program either.
    fn choice(&mut self, range: Range<usize>, others: Vec<(u32, String)>) {
        let (others, broken): (Vec<_>, Vec<_>) =
            others.into_iter().partition(|(_, text)| syn::parse_str::<Expr>(text).is_ok());
        self.sites.impossible.extend(broken.into_iter().map(|(switch, _)| switch));
        if !others.is_empty() {
            self.sites.edits.push(Edit::Choice { range, others });
        }
    }

    fn body(&mut self, block: &Block) {
        let Some(first) = block.stmts.first() else { return };
        let at = first.span().byte_range().start;
        for (switch, value) in self.take(Genre::FnValue, first.span()) {
            let text = format!("if {} {{ return {value}; }} ", question(switch));
            self.sites.edits.push(Edit::More { at, switch, text });
        }
    }

    fn arm(&mut self, arm: &syn::Arm) {
        let at = arm.pat.span().byte_range().end;
        for (switch, _) in self.take(Genre::MatchArm, arm.span()) {
            let text = format!(" if !{} ", question(switch));
            self.sites.edits.push(Edit::More { at, switch, text });
        }
    }

    /// The operators of a chain `a + b * c` and what is between them. Another operator may bind otherwise, so that each
    /// change is one to the text of the whole chain.
    fn chain(&mut self, whole: &Range<usize>, link: &ExprBinary, others: &mut Vec<(u32, String)>) {
        let operator = link.op.span();
        for (switch, replacement) in self.take(Genre::BinaryOperator, operator) {
            others.push((switch, self.with(whole, &operator.byte_range(), &replacement)));
        }
        for side in [&*link.left, &*link.right] {
            match side {
                Expr::Binary(link) => self.chain(whole, link, others),
                other => self.visit_expr(other),
            }
        }
    }

    /// `let` in a condition can only be joined by `&&`.
    fn chain_with_let(&mut self, link: &ExprBinary) {
        let taken = self.take(Genre::BinaryOperator, link.op.span());
        self.sites.impossible.extend(taken.into_iter().map(|(switch, _)| switch));
        for side in [&*link.left, &*link.right] {
            self.visit_expr(side);
        }
    }
}

fn has_let(side: &Expr) -> bool {
    match side {
        Expr::Let(_) => true,
        Expr::Binary(link) => {
            matches!(link.op, BinOp::And(_)) && (has_let(&link.left) || has_let(&link.right))
        }
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.body(&node.block);
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.body(&node.block);
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default {
            self.body(block);
        }
        visit::visit_trait_item_fn(self, node);
    }

    fn visit_expr_binary(&mut self, node: &'ast ExprBinary) {
        if has_let(&node.left) || has_let(&node.right) {
            return self.chain_with_let(node);
        }
        let range = node.span().byte_range();
        let mut others = Vec::new();
        self.chain(&range, node, &mut others);
        self.choice(range, others);
    }

    fn visit_expr_unary(&mut self, node: &'ast syn::ExprUnary) {
        let range = node.span().byte_range();
        let operator = node.op.span();
        let taken = self.take(Genre::UnaryOperator, operator);
        let others = taken
            .into_iter()
            .map(|(switch, text)| (switch, self.with(&range, &operator.byte_range(), &text)));
        let others = others.collect();
        self.choice(range, others);
        visit::visit_expr_unary(self, node);
    }

    fn visit_expr_match(&mut self, node: &'ast syn::ExprMatch) {
        // The compiler does not believe that an arm with a condition is taken: so another arm must take everything.
        let takes_all = |arm: &syn::Arm| match &arm.pat {
            _ if arm.guard.is_some() => false,
            Pat::Ident(name) => name.ident.to_string().starts_with(char::is_lowercase),
            other => matches!(other, Pat::Wild(_)),
        };
        if node.arms.iter().any(takes_all) {
            for arm in &node.arms {
                self.arm(arm);
            }
        }
        visit::visit_expr_match(self, node);
    }

    fn visit_arm(&mut self, node: &'ast syn::Arm) {
        if let Some((_, guard)) = node.guard.as_ref().filter(|(_, guard)| !has_let(guard)) {
            let others = self.take(Genre::MatchArmGuard, guard.span());
            self.choice(guard.span().byte_range(), others);
        }
        visit::visit_arm(self, node);
    }

    fn visit_expr_struct(&mut self, node: &'ast syn::ExprStruct) {
        let range = node.span().byte_range();
        let mut others = Vec::new();
        for pair in node.fields.pairs() {
            let field = pair.value().span();
            let end = pair.punct().map_or(field, |comma| comma.span()).byte_range().end;
            for (switch, text) in self.take(Genre::StructField, field) {
                others.push((switch, self.with(&range, &(field.byte_range().start..end), &text)));
            }
        }
        self.choice(range, others);
        visit::visit_expr_struct(self, node);
    }
}
