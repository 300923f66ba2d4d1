// Results as text for the pages of a report. Programs change only the text between `<!-- bench:NAME -->` and `<!-- /bench -->`, and the
// figures in sentences, which are between `<!-- =NAME -->` and `<!-- = -->`.
import { machineLine } from './machine.mjs';
import { goalTable, table } from './table.mjs';

const notes = (goals) => goals.filter(({ met, note }) => !met && note).map(({ what, note }) => `- ${what}: ${note}`);

/** Returns the section of one benchmark: the command, the machine, the goals, the charts, the tables and the facts. */
export const sectionOf = (name, result, folder) => {
  if (result === undefined) return `Not measured yet: \`npm run bench -- ${name}\`.`;
  const { command, rounds, machine, goals, charts, tables, facts } = result;
  const parts = [
    `\`${command}\`: ${machineLine(machine)}; ${rounds} rounds.`,
    goals.length > 0 && goalTable(goals),
    notes(goals).join('\n'),
    // The page for people shows the others.
    ...shown({ charts: charts.filter(({ opens }) => !opens), tables, facts }, folder),
  ];
  return parts.filter(Boolean).join('\n\n');
};

/** Returns a chart as an image with its alternative text: the title, unless the chart has another one. */
export const image = ({ id, title, alt = title }, folder) => `![${alt}](${folder}${id}.svg)`;

/** Returns the charts, tables and facts of a result as text. `folder` is the folder of the charts as the page sees it: empty, or with a `/` at its end. */
export const shown = ({ charts, tables, facts }, folder) => [
  ...charts.map((chart) => image(chart, folder)),
  ...tables.map((each) => `${each.title}:\n\n${table(each.columns, each.rows)}`),
  Object.entries(facts)
    .map(([fact, value]) => `- ${fact}: ${value}`)
    .join('\n'),
];

/** Returns a sentence about the goals, a table of the missed ones, and the reasons. */
export const summaryOf = (results) => {
  const goals = results.flatMap((result) => result.goals);
  const missed = goals.filter(({ met }) => !met);
  if (goals.length === 0) return 'Not measured yet: `npm run bench -- all`.';
  if (missed.length === 0) return `All ${goals.length} goals are met.`;
  const counted = `${goals.length - missed.length} of ${goals.length} goals are met. Missed:`;
  return [counted, goalTable(missed), notes(missed).join('\n')].filter(Boolean).join('\n\n');
};

/** Replaces the text between two marks. Throws if they are missing. */
export const fillBetween = (text, open, close, part) => {
  const from = text.indexOf(open);
  const to = text.indexOf(close, from);
  if (from === -1 || to === -1) throw new Error(`The text has no ${open} … ${close}`);
  return `${text.slice(0, from + open.length)}\n\n${part}\n\n${text.slice(to)}`;
};

/** Replaces the text between the marks `<!-- MARK:NAME -->` and `<!-- /MARK -->` of each section. */
export const fill = (document, sections, mark = 'bench') =>
  Object.entries(sections).reduce(
    (text, [name, section]) => fillBetween(text, `<!-- ${mark}:${name} -->`, `<!-- /${mark} -->`, section),
    document,
  );

/** Replaces the figures in the sentences of a text. Throws if a name has no figure. */
export const fillFigures = (text, figures) =>
  text.replaceAll(/<!-- =(\S+) -->.*?<!-- = -->/g, (_, name) => {
    if (!Object.hasOwn(figures, name)) throw new Error(`There is no figure ${name}.`);
    return `<!-- =${name} -->${figures[name]()}<!-- = -->`;
  });
