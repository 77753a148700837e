// What pages do beyond being read: theme, menu, copying, search. Without it every page is whole, with its menu closed.
'use strict';
const byId = id => document.getElementById(id), root = document.documentElement.dataset.root;

// ---- theme: kept for this site; private windows may refuse to keep anything
const stored = { get: () => { try { return localStorage.theme } catch { return undefined } }, set: v => { try { localStorage.theme = v } catch { } } };
if (stored.get()) document.documentElement.dataset.theme = stored.get();

document.addEventListener('DOMContentLoaded', () => {
  byId('theme').addEventListener('click', () => {
    const now = document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
    stored.set(document.documentElement.dataset.theme = now === 'dark' ? 'light' : 'dark');
  });

  // ---- menu and contents stand open where they have a column of their own, and close on a telephone when a link is followed
  for (const [id, width] of [['menu', '60em'], ['contents', '84em']]) {
    const box = byId(id), wide = matchMedia(`(min-width: ${width})`);
    if (!box) continue;
    const adapt = () => { box.open = wide.matches };
    wide.addEventListener('change', adapt);
    adapt();
    box.addEventListener('click', event => { if (event.target.closest('a') && !wide.matches) box.open = false });
    box.addEventListener('keydown', event => { if (event.key === 'Escape' && !wide.matches) { box.open = false; box.firstElementChild.focus() } });
  }

  for (const button of document.querySelectorAll('.code button'))
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(button.parentElement.querySelector('code').textContent);
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy' }, 1500);
    });

  // ---- search: its index is a script, which pages opened as files may load, too; it comes when the box is first used
  const box = byId('search'), list = byId('found');
  let coming;
  const index = () => coming ??= new Promise((done, failed) => {
    const script = document.createElement('script');
    script.src = root + 'search-index.js';
    script.onload = () => done(window.sections);
    script.onerror = failed;
    document.head.append(script);
  });
  box.addEventListener('focus', index);
  // Whole words; the last one may still be on its way. An underscore parts words, as in streamfilter_seen.
  const pattern = (word, isLast) => new RegExp('(?<![a-z0-9])' + word.replace(/[^a-z0-9_]/g, '\\$&') + (isLast ? '' : '(?![a-z0-9])'), 'i');
  const whole = word => new RegExp(pattern(word, false).source, 'i');
  box.addEventListener('input', async () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(w => w.length > 1), sections = await index();
    const tests = words.map((w, i) => [pattern(w, i === words.length - 1), whole(w)]);
    const hits = [];
    if (words.length) for (const section of sections) {
      const [, title, text] = section;
      if (!tests.every(([may]) => may.test(title) || may.test(text))) continue;
      hits.push([tests.reduce((sum, [may, is]) => sum + (is.test(title) ? 20 : may.test(title) ? 8 : 0) + (is.test(text) ? 3 : 0), 0), section]);
    }
    hits.sort((a, b) => b[0] - a[0]);
    list.replaceChildren(...hits.slice(0, 20).map(([, [address, title, text]]) => {
      const item = document.createElement('li'), link = document.createElement('a'), part = document.createElement('small');
      link.href = root + address;
      link.textContent = title;
      const at = Math.max(0, text.search(tests[0][0])), from = Math.max(0, at - 40), end = Math.min(at + words[0].length, text.length);
      const mark = document.createElement('mark');
      if (tests[0][0].test(text)) { mark.textContent = text.slice(at, end); part.append(text.slice(from, at), mark, text.slice(end, at + 70)) }
      item.append(link, part);
      return item;
    }));
    byId('count').textContent = !words.length ? '' : hits.length ? `${hits.length} found` : 'Nothing found';
  });
});
