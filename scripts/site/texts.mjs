// Prints the texts that users get as Markdown, for a review from top to bottom: node scripts/site/texts.mjs
// Help texts are in docs/command-line.md, and the words of events in src/cli/view/status.ts and logEvents.
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';

/** Where the texts of a section are: arguments of these calls, in this order, or properties of an object. */
const sections = {
  'Failures: the code, what happened, what to do': {
    folder: 'src/protocol/failures/',
    calls: { row: [1, 3], ticket: [1, 3], handshake: [1, 3], stream: [1, 3] },
    keys: ['code', 'meaning', 'advice'],
  },
  'Errors of a log, before the advice of their code': { calls: { LogError: [0, 1] } },
  'Doctor: what it found, what to do': {
    folder: 'src/cli/doctor.ts',
    calls: { ok: [0, 1], warning: [0, 1], skipped: [0], failed: [0, 1, 2], refused: [0, 1] },
  },
  'Command line': { calls: { usageError: [0], CliError: [0, 1], localError: [0, 2], nothingToDo: [0] } },
  'Command line: in place of texts of the library': { folder: 'src/cli/errors.ts', keys: ['summary', 'advice'] },
  'Command line: exit codes': { folder: 'src/cli/errors.ts', tuples: true },
  'Options: what their name "must be"': {
    calls: { invalidOption: [0, 1], wrongOption: [0, 1], objectWith: [1], mustBe: [0] },
    keys: ['allowed', 'problem'],
  },
  'Other errors, warnings, and refusals of the local service': {
    calls: {
      Error: [0],
      TypeError: [0],
      RangeError: [0],
      warn: [0],
      emitWarning: [0],
      refusal: [1, 2],
      malformed: [0],
    },
  },
};

const each = (node, visit) => {
  visit(node);
  ts.forEachChild(node, (child) => each(child, visit));
};

/** Returns what a name stands for: the value of the last constant above its use, in a block around it. */
const valueOf = (name) => {
  let value;
  each(name.getSourceFile(), (node) => {
    if (!ts.isVariableDeclaration(node) || node.name.getText() !== name.text || node.pos > name.pos) return;
    if (node.parent.parent.parent.end > name.pos) value = node.initializer ?? value;
  });
  return value && ts.isArrowFunction(value) ? undefined : value;
};

const textOf = (node) => {
  if (node === undefined) return '';
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node)) return node.getText().slice(1, -1);
  if (ts.isConditionalExpression(node)) return `${textOf(node.whenTrue)} / ${textOf(node.whenFalse)}`;
  if (ts.isBinaryExpression(node)) return `${textOf(node.left)}${textOf(node.right)}`;
  if (ts.isArrayLiteralExpression(node)) return node.elements.map(textOf).join(' → ');
  if (ts.isAsExpression(node)) return textOf(node.expression);
  if (ts.isCallExpression(node) && node.expression.text === 'printable') return textOf(node.arguments[0]);
  if (ts.isIdentifier(node) && valueOf(node)) return textOf(valueOf(node));
  return `\${${node.getText()}}`;
};

const textsIn = (node, { calls = {}, keys = [], tuples = false }) => {
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
    const called = node.expression.name?.text ?? node.expression.text;
    return (Object.hasOwn(calls, called) ? calls[called] : []).map((at) => textOf(node.arguments?.[at]));
  }
  if (ts.isObjectLiteralExpression(node))
    return keys.map((key) => textOf(node.properties.find(({ name }) => name?.getText() === key)?.initializer));
  const isRow = tuples && ts.isArrayLiteralExpression(node) && ts.isPropertyAssignment(node.parent);
  return isRow ? [textOf(node)] : [];
};

const files = readdirSync('src', { recursive: true }).filter((name) => /(?<!\.d)\.ts$/.test(name));
const sources = files.sort().map((name) => {
  const file = `src/${name.replaceAll('\\', '/')}`;
  return ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true);
});
for (const [title, { folder = 'src/', ...wanted }] of Object.entries(sections)) {
  console.log(`\n## ${title}\n\n| where | text |\n| --- | --- |`);
  for (const source of sources.filter(({ fileName }) => fileName.startsWith(folder)))
    each(source, (node) => {
      const text = textsIn(node, wanted).filter(Boolean).join(' → ').replace(/\s+/g, ' ');
      const line = source.getLineAndCharacterOfPosition(node.getStart()).line + 1;
      if (/[a-z]{2} /i.test(text.replaceAll(/\$\{.*?\}/g, ' ')))
        console.log(`| ${source.fileName}:${line} | ${text.replaceAll('|', '\\|')} |`);
    });
}
