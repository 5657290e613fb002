import { wrongValue } from "./errors.js";

const blank = /\s/;

/**
 * A flag that holds a program with its arguments, as a person writes it: blanks part words, quotes keep them together, a
 * backslash takes the next character as it is (inside single quotes it is one itself). No shell reads it.
 */
export function parseWords(flag: string): (given: string) => [string, ...string[]] {
  return (given) => {
    const [program, ...args] = splitWords(flag, given);
    if (program) return [program, ...args];
    throw wrongValue(flag, given, "a program with its arguments, such as 'node evaluate.mjs'");
  };
}

function splitWords(flag: string, given: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < given.length; at++) {
    const character = given.charAt(at);
    if (character === quote) quote = undefined;
    else if (character === "\\" && quote !== "'" && at + 1 < given.length)
      word = (word ?? "") + given.charAt(++at);
    else if (quote !== undefined) word += character;
    else if (character === "'" || character === '"') {
      quote = character;
      word ??= "";
    } else if (blank.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + character;
  }
  if (quote !== undefined)
    throw wrongValue(flag, given, `a command whose quotes are closed: one ${quote} is open`);
  return word === undefined ? words : [...words, word];
}
