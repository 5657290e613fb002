// What the coder may try, in parts of words.js. None of them says how good it is: that is the evaluator's to find out.

export const rewrites = [
  {
    summary: "Count in an object, whose keys are found at once",
    name: "count",
    replace: `  // count
  const byWord = {};
  for (const word of words) byWord[word] = (byWord[word] ?? 0) + 1;
  const counts = Object.entries(byWord).map(([word, count]) => ({ word, count }));`,
  },
  {
    summary: "Do not compare again what earlier rounds have brought to the end",
    name: "order",
    replace: `  // order
  for (let round = 0; round < counts.length; round += 1) {
    for (let at = 0; at < counts.length - 1 - round; at += 1) {
      const [a, b] = [counts[at], counts[at + 1]];
      if (a.count < b.count || (a.count === b.count && a.word > b.word)) {
        counts[at] = b;
        counts[at + 1] = a;
      }
    }
  }`,
  },
  {
    summary: "Count each word by going through all of them",
    name: "count",
    replace: `  // count
  const counts = [...new Set(words)].map((word) => ({
    word,
    count: words.filter((other) => other === word).length,
  }));`,
  },
  {
    summary: "Order by the counts alone",
    name: "order",
    replace: "  // order\n  counts.sort((a, b) => b.count - a.count);",
  },
  {
    summary: "Write somewhere else",
    file: "../words.js",
    search: "anything",
    replace: "nothing",
  },
  {
    summary: "Count in a map",
    name: "count",
    replace: `  // count
  const byWord = new Map();
  for (const word of words) byWord.set(word, (byWord.get(word) ?? 0) + 1);
  const counts = [...byWord].map(([word, count]) => ({ word, count }));`,
  },
  {
    summary: "Return copies",
    name: "answer",
    replace: "  // answer\n  return counts.map((entry) => ({ ...entry }));",
  },
  {
    summary: "Forget what stands in the brackets",
    name: "answer",
    replace: "  // answer\n  return counts.slice(;",
  },
  {
    summary: "Let the benchmark count fewer words",
    file: "bench.js",
    search: "const WORDS = 12_000;",
    replace: "const WORDS = 12;",
  },
  {
    summary: "Order with the language's own sort",
    name: "order",
    replace: "  // order\n  counts.sort((a, b) => b.count - a.count || (a.word < b.word ? -1 : 1));",
  },
  {
    summary: "Order by inserting each word at its place",
    name: "order",
    replace: `  // order
  for (let end = 1; end < counts.length; end += 1) {
    const entry = counts[end];
    let at = end;
    for (; at > 0; at -= 1) {
      const before = counts[at - 1];
      if (before.count > entry.count || (before.count === entry.count && before.word < entry.word)) break;
      counts[at] = before;
    }
    counts[at] = entry;
  }`,
  },
];
