/** The words of a text with how often each occurs: the most frequent first, equals by the alphabet. */
export function wordCounts(text) {
  const words = text.toLowerCase().match(/[a-z']+/g) ?? [];

  // count
  const counts = [];
  for (const word of words) {
    const known = counts.find((entry) => entry.word === word);
    if (known) known.count += 1;
    else counts.push({ word, count: 1 });
  }

  // order
  for (let round = 0; round < counts.length; round += 1) {
    for (let at = 0; at < counts.length - 1; at += 1) {
      const [a, b] = [counts[at], counts[at + 1]];
      if (a.count < b.count || (a.count === b.count && a.word > b.word)) {
        counts[at] = b;
        counts[at + 1] = a;
      }
    }
  }

  // answer
  return counts;
}
