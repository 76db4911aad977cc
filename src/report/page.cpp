#include "implicit_diffusion/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "implicit_diffusion/report/text.hpp"
#include "implicit_diffusion/report/theme.hpp"

namespace implicit_diffusion::report {
namespace {

constexpr const char* style = R"css(
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;text-rendering:optimizeLegibility}
.sheet{max-width:70rem;margin:0 auto;padding:3.5rem 2rem 4rem}
h1,h2{font-family:"Iowan Old Style","Palatino Linotype",Palatino,"Source Serif 4",Charter,Georgia,"Times New Roman",serif;font-weight:600;line-height:1.2;text-wrap:balance}
h1{font-size:clamp(1.75rem,1.3rem + 2vw,2.5rem);letter-spacing:-.01em;margin:0 3rem .5rem 0;overflow-wrap:anywhere}
h2{font-size:1.45rem;margin:0 0 .75rem}
.subtitle{color:var(--muted);margin:0;max-width:44rem;overflow-wrap:anywhere}
p{margin:0 0 1rem;max-width:42rem;overflow-wrap:break-word}
.opening{margin:1.25rem 0 0;max-width:44rem;overflow-wrap:anywhere}
.notice{margin:1.5rem 0 0;padding:.7rem 1rem;border-left:4px solid var(--dot);background:var(--raised);overflow-wrap:anywhere}
section{margin-top:3.25rem;padding-top:1.75rem;border-top:1px solid var(--rule)}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(10.5rem,1fr));gap:1.5rem 2rem;margin:2.25rem 0 0}
.facts>div{border-top:2px solid var(--ink);padding-top:.55rem;min-width:0}
.facts dt{color:var(--muted);font-size:.875rem;line-height:1.35}
.facts dd{margin:0;overflow-wrap:anywhere}
.facts .value{font-size:1.7rem;line-height:1.3;font-variant-numeric:tabular-nums;letter-spacing:-.01em}
.facts .note{color:var(--muted);font-size:.875rem;line-height:1.4}
.figures{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:2.75rem 3rem;margin:1.75rem 0;align-items:start}
.three{grid-template-columns:repeat(3,minmax(0,1fr));column-gap:2rem}
figure{margin:0;min-width:0}
.wide{grid-column:1/-1}
.pixels{display:block;max-width:100%;height:auto;image-rendering:pixelated}
figcaption{color:var(--muted);font-size:.875rem;line-height:1.5;margin-top:.6rem;overflow-wrap:break-word}
.scroll{overflow-x:auto;margin:1.5rem 0}
table{border-collapse:collapse;font-size:.9375rem;line-height:1.4;font-variant-numeric:tabular-nums;border-bottom:1.5px solid var(--ink);border-top:1.5px solid var(--ink)}
th,td{padding:.4rem 1.25rem .4rem 0;text-align:left;vertical-align:baseline;white-space:nowrap}
th:last-child,td:last-child{padding-right:0}
thead th{font-weight:600;border-bottom:1px solid var(--axis)}
tbody tr+tr td{border-top:1px solid var(--rule)}
.number{text-align:right}
.wrap td{white-space:normal;min-width:11rem}
.pictures{border:0;width:100%}
.pictures th,.pictures td{padding:.2rem;border:0!important;vertical-align:middle;min-width:6.5rem}
.pictures th{white-space:normal;font-size:.8125rem}
.pictures thead th{text-align:center}
.pictures thead th:first-child,.pictures tbody th{text-align:left;position:sticky;left:0;background:var(--paper);min-width:5.5rem}
.slides label{display:flex;gap:.75rem;align-items:center;max-width:42rem}
.slides output{min-width:3.5rem;font-variant-numeric:tabular-nums;font-weight:600}
.slides input{flex:1;accent-color:var(--series-0)}
.thumbnail .dots{stroke-width:2.6}
.code figcaption{margin:0 0 .5rem}
.code{margin:1.5rem 0}
pre{margin:0;padding:1rem 1.15rem;background:var(--raised);border-radius:4px;overflow:auto;max-height:30rem;font:.8125rem/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;tab-size:4}
footer{margin-top:3.25rem;padding-top:1.25rem;border-top:1px solid var(--rule);color:var(--muted);font-size:.875rem;overflow-wrap:anywhere}
:focus-visible{outline:2px solid var(--series-0);outline-offset:2px}
#theme{position:absolute;top:1.25rem;right:max(1.25rem,calc(50vw - 33rem));width:2.25rem;height:2.25rem;border:1px solid var(--rule);border-radius:50%;background:var(--paper);color:var(--ink);font-size:1.05rem;line-height:1;cursor:pointer}
#theme:hover{border-color:var(--axis)}
#readout{position:fixed;z-index:1;pointer-events:none;background:var(--paper);border:1px solid var(--axis);border-radius:4px;padding:.4rem .6rem;font-size:.8125rem;line-height:1.45;font-variant-numeric:tabular-nums;box-shadow:0 2px 10px #0002;max-width:90vw}
#readout div{display:flex;gap:.45rem;align-items:center;white-space:nowrap}
#readout b{margin-left:auto;padding-left:.75rem;font-weight:600}
#readout i{width:.85rem;height:0;border-top:3px solid var(--c);flex:none}
#readout .d1{border-top-style:dashed}#readout .d2{border-top-style:dotted}
#readout .s0{--c:var(--series-0)}#readout .s1{--c:var(--series-1)}#readout .s2{--c:var(--series-2)}
#readout .s3{--c:var(--series-3)}#readout .s4{--c:var(--series-4)}#readout .s5{--c:var(--series-5)}
.figure .cross{stroke:var(--axis);stroke-width:1}
.figure .spot{fill:var(--c);stroke:var(--paper);stroke-width:1.2}
@media screen and (max-width:62rem){.three{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media screen and (max-width:46rem){.cards,.cards tbody,.cards tr{display:block}.cards thead{display:none}.cards tr{padding:.5rem 0}.cards tr+tr{border-top:1px solid var(--rule)}.cards td{display:flex;justify-content:space-between;gap:1rem;padding:.1rem 0;border:0!important;white-space:normal}.cards td:empty{display:none}.cards td:first-child{font-weight:600}.cards td:not(:first-child)::before{content:attr(data-label);color:var(--muted)}.wrap thead{display:none}.wrap tr,.wrap td{display:block;padding-right:0}.wrap td:first-child{font-weight:600}.wrap tbody tr td+td{border-top:0;padding-top:0}.sheet{padding:2.25rem .75rem 3rem}.figures,.three{grid-template-columns:minmax(0,1fr);gap:2.25rem}section{margin-top:2.25rem}.facts{grid-template-columns:repeat(2,minmax(0,1fr));gap:1.25rem 1.25rem}.facts .value{font-size:1.4rem}#theme{top:1rem;right:.75rem}}
@media print{.slides{display:none}@page{margin:16mm}body{font-size:10pt}.sheet{padding:0;max-width:none}#theme,#readout{display:none}figure,table,.facts>div{break-inside:avoid}h2{break-after:avoid}pre{max-height:none;white-space:pre-wrap;border:1px solid var(--rule)}.figures{gap:1.5rem}section{margin-top:1.5rem;padding-top:1rem}}
)css";

// Runs before anything is painted, so that a theme chosen earlier does not flash.
constexpr const char* early_script = R"js(
try{var t=localStorage.getItem("theme");if(t)document.documentElement.dataset.theme=t}catch(e){}
)js";

constexpr const char* late_script = R"js(
(function(){
"use strict";
var root=document.documentElement,button=document.getElementById("theme");
button.hidden=false;
button.onclick=function(){
  var dark=root.dataset.theme?root.dataset.theme==="dark":matchMedia("(prefers-color-scheme:dark)").matches;
  root.dataset.theme=dark?"light":"dark";
  try{localStorage.setItem("theme",root.dataset.theme)}catch(e){}
};

// One column of a table of pictures at a time, large.
document.querySelectorAll(".slides").forEach(function(slides){
  var rows=slides.nextElementSibling.querySelectorAll("tbody tr"),heads=slides.nextElementSibling.querySelectorAll("thead th");
  var input=slides.querySelector("input"),output=slides.querySelector("output"),stage=slides.querySelector(".stage");
  function show(){
    var k=+input.value;
    output.textContent=heads[k+1].textContent;
    stage.textContent="";
    Array.prototype.forEach.call(rows,function(row){
      var figure=document.createElement("figure"),caption=document.createElement("figcaption");
      figure.appendChild(row.querySelectorAll("td")[k].firstElementChild.cloneNode(true));
      caption.textContent=row.querySelector("th").textContent;
      figure.appendChild(caption);
      stage.appendChild(figure);
    });
  }
  input.oninput=show;show();slides.hidden=false;
});

// The values of the curves under the pointer, read back from the paths through the axes.
var box=document.createElement("div");
box.id="readout";box.hidden=true;document.body.appendChild(box);
function axis(svg,name){
  var a=svg.dataset[name].split(" "),from=+a[0],to=+a[1],low=+a[2],high=+a[3],log=a[4]==="log";
  return function(p){var t=(p-from)/(to-from);return log?low*Math.pow(high/low,t):low+t*(high-low)};
}
function points(path){
  var all=[],x=0,y=0;
  (path.getAttribute("d").match(/[Mlh][^Mlh]*/g)||[]).forEach(function(piece){
    var n=(piece.match(/-?\d*\.?\d+/g)||[]).map(Number);
    if(piece[0]==="M"){x=n[0];y=n[1];all.push([x,y])}
    if(piece[0]==="l")for(var i=0;i+1<n.length;i+=2){x+=n[i];y+=n[i+1];all.push([x,y])}
  });
  return all;
}
// As many digits as a tenth of a unit in the picture is worth.
function show(v,span){
  var order=Math.floor(Math.log10(span))-2,unit=Math.pow(10,order);
  var text=order>5||order<-6?v.toPrecision(3):(Math.round(v/unit)*unit).toFixed(Math.max(0,-order));
  return text.replace(/-/g,"\u2212");
}
function element(parent,name,attributes){
  var e=document.createElementNS("http://www.w3.org/2000/svg",name);
  for(var k in attributes)e.setAttribute(k,attributes[k]);
  return parent.appendChild(e);
}
function line(text,value,kind){
  var row=document.createElement("div"),name=document.createElement("span"),number=document.createElement("b");
  if(kind){var mark=document.createElement("i");mark.className=kind;row.appendChild(mark)}
  name.textContent=text;number.textContent=value;row.appendChild(name);row.appendChild(number);box.appendChild(row);
}
document.querySelectorAll("svg.figure").forEach(function(svg){
  var curves=Array.prototype.map.call(svg.querySelectorAll("path.line"),function(p){
    return {points:points(p),kind:p.getAttribute("class").replace("line ",""),label:p.dataset.label};
  });
  if(!curves.length)return;
  var title=svg.querySelector("title");if(title)title.remove(); // its tooltip would cover the readout; aria-label stays
  var x=axis(svg,"x"),y=axis(svg,"y"),xs=svg.dataset.x.split(" "),ys=svg.dataset.y.split(" "),layer=null;
  var xSpan=Math.abs(xs[3]-xs[2]),ySpan=Math.abs(ys[3]-ys[2]);
  svg.style.touchAction="pan-y";
  function hide(){box.hidden=true;if(layer){layer.remove();layer=null}}
  function move(event){
    hide();
    var m=svg.getScreenCTM();if(!m)return;
    var at=(event.clientX-m.e)/m.a,row=(event.clientY-m.f)/m.d;
    if(at<+xs[0]-4||at>+xs[1]+4||row<+ys[1]-8||row>+ys[0]+8)return;
    // All readings are taken at the nearest place where some curve has a point.
    var place=null;
    curves.forEach(function(c){c.points.forEach(function(p){if(place===null||Math.abs(p[0]-at)<Math.abs(place-at))place=p[0]})});
    if(place===null)return;
    box.textContent="";
    line(svg.dataset.xLabel,show(x(place),xs[4]==="log"?x(place):xSpan));
    layer=element(svg,"g",{"aria-hidden":"true"});
    element(layer,"path",{"class":"cross",d:"M"+place+" "+ys[1]+"V"+ys[0]});
    curves.map(function(c){
      var best=null;
      c.points.forEach(function(p){if(!best||Math.abs(p[0]-place)<Math.abs(best[0]-place))best=p});
      return best&&Math.abs(best[0]-place)<4?{curve:c,point:best}:null;
    }).filter(Boolean).sort(function(a,b){return a.point[1]-b.point[1]}).forEach(function(hit){
      element(layer,"circle",{"class":"spot "+hit.curve.kind,cx:hit.point[0],cy:hit.point[1],r:3.4});
      var v=y(hit.point[1]);
      line(hit.curve.label,show(v,ys[4]==="log"?v:ySpan),hit.curve.kind);
    });
    box.hidden=false;
    var w=box.offsetWidth,h=box.offsetHeight,left=event.clientX+16;
    if(left+w>innerWidth-8)left=event.clientX-16-w;
    box.style.left=Math.max(8,left)+"px";
    box.style.top=Math.max(8,Math.min(innerHeight-h-8,event.clientY-h/2))+"px";
  }
  svg.addEventListener("pointermove",move);
  svg.addEventListener("pointerdown",move);
  svg.addEventListener("pointerleave",hide);
  svg.addEventListener("pointercancel",hide);
});
})();
)js";

// Whether the cell reads as a number, with sign, unit of percent, or an error: "-1.2", "3.4e-5", "12 %", "0.29 ± 0.01".
bool is_number(std::string_view cell) {
  bool digit = false;
  while (!cell.empty()) {
    const char c = cell.front();
    std::size_t length = 1;
    for (const std::string_view sign : {"±", "×", "−"})
      if (cell.starts_with(sign)) length = sign.size();
    if (std::isdigit(static_cast<unsigned char>(c)) != 0)
      digit = true;
    else if (length == 1 && !(digit && (c == 'e' || c == 'E')) &&
             std::string_view("+-. ,%").find(c) == std::string_view::npos)
      return false;
    cell.remove_prefix(length);
  }
  return digit;
}

std::string paragraphs(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find("\n\n");
    const std::string_view paragraph = text.substr(0, end);
    if (paragraph.find_first_not_of(" \t\r\n") != std::string_view::npos)
      out += fmt::format("<p>{}</p>\n", escape(paragraph));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
  }
  return out;
}

std::string table_html(const Table& table) {
  std::size_t columns = table.header.size();
  for (const auto& row : table.rows) columns = std::max(columns, row.size());
  if (columns == 0) return {};
  std::vector<std::string> kind(columns);
  for (std::size_t j = 0; j < columns; ++j) {
    bool numbers = false, words = false;
    for (const auto& row : table.rows) {
      if (j >= row.size() || row[j].empty() || row[j] == "-" || row[j] == "–" || row[j] == "never") continue;
      (is_number(row[j]) ? numbers : words) = true;
    }
    if (numbers && !words) kind[j] = " class=\"number\"";
  }
  const auto cell = [](const std::vector<std::string>& row, std::size_t j) {
    return j < row.size() ? escape(row[j]) : std::string();
  };
  std::string out = fmt::format("<div class=\"scroll\" tabindex=\"0\"><table{}>\n", table.wrap    ? " class=\"wrap\""
                                                                                    : columns > 3 ? " class=\"cards\""
                                                                                                  : "");
  if (!table.header.empty()) {
    out += "<thead><tr>";
    for (std::size_t j = 0; j < columns; ++j)
      out += fmt::format("<th scope=\"col\"{}>{}</th>", kind[j], cell(table.header, j));
    out += "</tr></thead>\n";
  }
  out += "<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (std::size_t j = 0; j < columns; ++j)
      out += fmt::format("<td{}{}>{}</td>", kind[j],
                         table.wrap || columns <= 3 || cell(table.header, j).empty()
                             ? ""
                             : fmt::format(" data-label=\"{}\"", cell(table.header, j)),
                         cell(row, j));
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string picture_table_html(const PictureTable& t) {
  std::string out = fmt::format(
      "<div class=\"slides\" hidden=\"\"><label>{} <output>{}</output><input type=\"range\" min=\"0\" max=\"{}\" "
      "value=\"{}\" step=\"1\"/></label><div class=\"figures three stage\"></div></div>\n",
      escape(t.slider), t.columns.empty() ? "" : escape(t.columns.back()), t.columns.size() - 1, t.columns.size() - 1);
  out += "<div class=\"scroll\" tabindex=\"0\"><table class=\"pictures\">\n<thead><tr><th scope=\"col\">" +
         escape(t.slider) + "</th>";
  for (const std::string& column : t.columns) out += fmt::format("<th scope=\"col\">{}</th>", escape(column));
  out += "</tr></thead>\n<tbody>\n";
  for (std::size_t r = 0; r < t.rows.size(); ++r) {
    out += fmt::format("<tr><th scope=\"row\">{}</th>", escape(t.rows[r]));
    for (const std::string& picture : t.pictures[r]) out += "<td>" + picture + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string section_html(const Section& section) {
  std::string out = "<section>\n";
  if (!section.heading.empty()) out += fmt::format("<h2>{}</h2>\n", escape(section.heading));
  out += paragraphs(section.text);
  if (!section.figures.empty()) {
    out += section.three_in_a_row ? "<div class=\"figures three\">\n" : "<div class=\"figures\">\n";
    for (const Figure& figure : section.figures) {
      out += (figure.wide ? "<figure class=\"wide\">\n" : "<figure>\n") + figure.picture;
      if (!figure.caption.empty()) out += fmt::format("<figcaption>{}</figcaption>", escape(figure.caption));
      out += "</figure>\n";
    }
    out += "</div>\n";
  }
  for (const PictureTable& table : section.picture_tables) out += picture_table_html(table);
  for (const Table& table : section.tables) out += table_html(table);
  for (const auto& [caption, text] : section.code) {
    out += "<figure class=\"code\">";
    if (!caption.empty()) out += fmt::format("<figcaption>{}</figcaption>", escape(caption));
    // A parser drops a line break right after <pre>, so one is given for it to drop.
    out += fmt::format("<pre tabindex=\"0\">\n{}</pre></figure>\n", escape(text));
  }
  return out + "</section>\n";
}

std::string facts_html(const std::vector<Fact>& facts) {
  if (facts.empty()) return {};
  std::string out = "<dl class=\"facts\">\n";
  for (const Fact& fact : facts) {
    out += fmt::format("<div><dt>{}</dt><dd class=\"value\">{}</dd>", escape(fact.label), escape(fact.value));
    if (!fact.note.empty()) out += fmt::format("<dd class=\"note\">{}</dd>", escape(fact.note));
    out += "</div>\n";
  }
  return out + "</dl>\n";
}

}  // namespace

std::string to_html(const Page& page) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'; img-src data:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  out += "<title>" + escape(page.title) + "</title>\n<style>\n" + figure_style() + style + "</style>\n<script>" +
         early_script +
         "</script>\n</head>\n<body>\n<button id=\"theme\" type=\"button\" hidden aria-label=\"Light or dark\" "
         "title=\"Light or dark\">◐</button>\n<div class=\"sheet\">\n<header>\n<h1>" +
         escape(page.title) + "</h1>\n";
  if (!page.subtitle.empty()) out += fmt::format("<p class=\"subtitle\">{}</p>\n", escape(page.subtitle));
  if (!page.opening.empty()) out += fmt::format("<p class=\"opening\">{}</p>\n", escape(page.opening));
  if (!page.notice.empty()) out += fmt::format("<p class=\"notice\">{}</p>\n", escape(page.notice));
  for (const std::string& warning : page.warnings)
    out += fmt::format("<p class=\"notice\"><strong>Warning:</strong> {}</p>\n", escape(warning));
  out += facts_html(page.facts) + "</header>\n<main>\n";
  for (const Section& section : page.sections) out += section_html(section);
  out += "</main>\n";
  if (!page.footer.empty()) out += fmt::format("<footer>{}</footer>\n", escape(page.footer));
  return out + "</div>\n<script>" + late_script + "</script>\n</body>\n</html>\n";
}

}  // namespace implicit_diffusion::report
