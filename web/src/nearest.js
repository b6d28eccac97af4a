// @ts-check
// Guesses at the word that a caller meant.

/** Letters of a word for each that may differ in a guess. */
const LETTERS = 3;

/** Fewest letters that tell a word which contains them. */
const FEW = 3;

/**
 * Returns a hint at the word that is most like `word`; nothing if none is like it.
 * @param {unknown} word
 * @param {readonly string[]} words
 */
export function hintOf(word, words) {
  if (typeof word !== 'string') return '';
  const meant = word.toLowerCase();
  const contains = (/** @type {string} */ other) => meant.length >= FEW && other.toLowerCase().includes(meant);
  // A word that contains another is like it, such as memoryBudget and budget.
  const ranked = words.map((other) => ({ other, changes: contains(other) ? 0 : changesBetween(meant, other.toLowerCase()) }));
  const [nearest] = ranked.sort((a, b) => a.changes - b.changes);
  const most = meant.length < FEW ? 0 : Math.max(1, Math.floor(meant.length / LETTERS));
  return nearest && nearest.changes <= most ? ` (did you mean "${nearest.other}"?)` : '';
}

/**
 * Counts the letters to insert, remove or replace between two words (Levenshtein).
 * @param {string} a
 * @param {string} b
 */
function changesBetween(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let line = 1; line <= a.length; line += 1) {
    const next = [line];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = row[column - 1] + (a[line - 1] === b[column - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[column] + 1, next[column - 1] + 1));
    }
    row = next;
  }
  return row[b.length];
}
