// Invented sentences in several varieties of English; the first is shown on a first visit.

export const EXAMPLES = [
  ["British", "Oh brilliant, the 8:14 is cancelled again. I do so love an hour on a freezing platform with four hundred strangers."],
  ["Australian", "Yeah nah, forty minutes for a flat white and they burnt the milk. Ripper service, legends."],
  ["Indian", "Only three power cuts since morning, we are truly blessed yaar. The inverter company must be sending them sweets."],
  ["Nigerian", "Network don go again. Oga, thank you for this unlimited plan, we are enjoying it well well."],
  ["Singaporean", "Queue damn long but confirm worth it lah, the chilli crab was fresh and auntie so friendly."],
  ["Irish", "The heating is gone in January. Ah sure it's grand, who needs toes."],
  ["plain", "The room was clean, breakfast was good and the staff helped us with the bags. We will come back."],
];

// For a model that reads two texts.
export const PAIR = { text: "The kettle boiled over and the tea was cold.", pair: "Nobody enjoyed the tea." };
